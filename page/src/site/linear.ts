/** The little linear algebra that designs need: small dense problems, in float64. */

export type Vector = number[]
export type Rows = number[][]

export const dot = (a: ArrayLike<number>, b: ArrayLike<number>): number => {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i]
  return sum
}
export const norm = (a: ArrayLike<number>): number => Math.sqrt(dot(a, a))
export const scaled = (a: Vector, factor: number): Vector => a.map((entry) => entry * factor)
export const plus = (a: Vector, b: Vector, factor = 1): Vector => a.map((entry, i) => entry + factor * b[i])
export const times = (rows: Rows, x: Vector): Vector => rows.map((row) => dot(row, x))
export const zeros = (length: number): Vector => new Array<number>(length).fill(0)
export const eye = (rows: number, columns = rows): Rows => Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, j) => (i === j ? 1 : 0)))
export const transposed = (rows: Rows): Rows => (rows[0] ?? []).map((_, j) => rows.map((row) => row[j]))
/** Σ w_i row_i. */
export const combined = (weights: ArrayLike<number>, rows: Rows, columns = rows[0]?.length ?? 0): Vector => {
  const sum = zeros(columns)
  rows.forEach((row, i) => row.forEach((entry, j) => (sum[j] += weights[i] * entry)))
  return sum
}

export interface Svd {
  /** One row for each singular value. */
  left: Rows
  singular: Vector
  right: Rows
}

/** A = Σ_k s_k left_k right_kᵀ, the largest s first, by Jacobi rotations: small ones are accurate too. */
export function svd(A: Rows): Svd {
  const tall = A.length >= (A[0]?.length ?? 0)
  const columns = tall ? transposed(A) : A.map((row) => [...row])
  const turned = eye(columns.length)
  for (let sweep = 0; sweep < 60; sweep++) {
    let rotated = false
    for (let p = 0; p < columns.length; p++) {
      for (let q = p + 1; q < columns.length; q++) {
        const a = dot(columns[p], columns[p])
        const b = dot(columns[q], columns[q])
        const c = dot(columns[p], columns[q])
        if (Math.abs(c) <= 1e-16 * Math.sqrt(a * b) || c === 0) continue
        rotated = true
        const zeta = (b - a) / (2 * c)
        const t = Math.sign(zeta || 1) / (Math.abs(zeta) + Math.sqrt(1 + zeta * zeta))
        const cos = 1 / Math.sqrt(1 + t * t)
        for (const pair of [columns, turned]) {
          const [x, y] = [pair[p], pair[q]]
          pair[p] = x.map((entry, i) => cos * entry - cos * t * y[i])
          pair[q] = x.map((entry, i) => cos * t * entry + cos * y[i])
        }
      }
    }
    if (!rotated) break
  }
  const sizes = columns.map(norm)
  const order = sizes.map((_, i) => i).sort((i, j) => sizes[j] - sizes[i])
  const units = order.map((i) => (sizes[i] > 0 ? scaled(columns[i], 1 / sizes[i]) : columns[i]))
  const others = order.map((i) => turned[i])
  const singular = order.map((i) => sizes[i])
  return tall ? { left: units, singular, right: others } : { left: others, singular, right: units }
}

/** The x of least squares |Ax − b|, A with independent columns (given as such), by Gram–Schmidt done twice. */
export function leastSquares(columns: Rows, b: Vector): Vector | null {
  const Q: Rows = []
  const R: Rows = []
  for (const column of columns) {
    let rest = column
    const r = zeros(columns.length)
    for (let pass = 0; pass < 2; pass++) {
      Q.forEach((q, i) => {
        const share = dot(q, rest)
        r[i] += share
        rest = plus(rest, q, -share)
      })
    }
    const size = norm(rest)
    if (size <= 1e-13 * Math.max(norm(column), 1e-300)) return null
    r[Q.length] = size
    Q.push(scaled(rest, 1 / size))
    R.push(r)
  }
  const x = zeros(columns.length)
  for (let i = columns.length - 1; i >= 0; i--) {
    let sum = dot(Q[i], b)
    for (let j = i + 1; j < columns.length; j++) sum -= R[j][i] * x[j]
    x[i] = sum / R[i][i]
  }
  return x
}

/** λ ≥ 0 that minimises |Σ λ_i column_i − b| (Lawson and Hanson). */
export function nonNegative(columns: Rows, b: Vector): Vector {
  const x = zeros(columns.length)
  const passive: number[] = []
  const refused = new Set<number>()
  for (let round = 0; round < 10 * (columns.length + b.length); round++) {
    const rest = plus(b, combined(x, columns, b.length), -1)
    let best = -1
    let steepest = 1e-14
    columns.forEach((column, i) => {
      const slope = dot(column, rest)
      if (slope > steepest && !passive.includes(i) && !refused.has(i)) [best, steepest] = [i, slope]
    })
    if (best < 0) break
    passive.push(best)
    for (;;) {
      const solved = leastSquares(passive.map((i) => columns[i]), b)
      if (solved === null || (solved[passive.length - 1] <= 0 && passive[passive.length - 1] === best && x[best] === 0)) {
        refused.add(passive.pop()!) // nothing new in this direction, within rounding
        break
      }
      if (solved.every((share) => share > 0)) {
        passive.forEach((i, place) => (x[i] = solved[place]))
        refused.clear()
        break
      }
      let step = 1
      passive.forEach((i, place) => {
        if (solved[place] <= 0) step = Math.min(step, x[i] / (x[i] - solved[place]))
      })
      passive.forEach((i, place) => (x[i] += step * (solved[place] - x[i])))
      for (let place = passive.length - 1; place >= 0; place--) {
        if (x[passive[place]] <= 1e-15) x[passive.splice(place, 1)[0]] = 0
      }
    }
  }
  return x
}

/** x with (S + shift I) x = b, S symmetric; null unless that is positive definite. */
export function solved(S: Rows, b: Vector, shift: number): Vector | null {
  const n = b.length
  const L = eye(n).map((row) => row.map(() => 0))
  for (let i = 0; i < n; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = S[i][j] + (i === j ? shift : 0)
      for (let k = 0; k < j; k++) sum -= L[i][k] * L[j][k]
      if (i !== j) L[i][j] = sum / L[j][j]
      else if (sum > 0) L[i][i] = Math.sqrt(sum)
      else return null
    }
  }
  const x = [...b]
  for (let i = 0; i < n; i++) {
    for (let k = 0; k < i; k++) x[i] -= L[i][k] * x[k]
    x[i] /= L[i][i]
  }
  for (let i = n - 1; i >= 0; i--) {
    for (let k = i + 1; k < n; k++) x[i] -= L[k][i] * x[k]
    x[i] /= L[i][i]
  }
  return x
}

/** Where a function crosses 0 between two places on whose sides it differs, to the last bit. */
export function root(f: (t: number) => number, low: number, high: number): number {
  let below = f(low)
  if (below === 0) return low
  for (let round = 0; round < 2000; round++) {
    const middle = low + (high - low) / 2
    if (middle <= Math.min(low, high) || middle >= Math.max(low, high)) break
    const value = f(middle)
    if (value === 0) return middle
    if (value > 0 === below > 0) [low, below] = [middle, value]
    else high = middle
  }
  return high
}
