/**
 * The mathematics of a dragged query, as room `attention` defines it:
 *
 *     c = Σ α_i v_i,   α_i = exp(s k_i·q) / Σ_j exp(s k_j·q)
 *
 * It is repeated here because a drag needs sixty answers a second. `tests/web/golden.json`, which
 * Python writes, holds both sides to the same numbers.
 */

export type Point = [number, number]

/** Rows of numbers, one after another. */
export interface Matrix {
  rows: number
  columns: number
  data: Float64Array
}

export interface Reading {
  /** α of each head: heads × keys. */
  heads: Float64Array[]
  /** Their mean over the heads. */
  weights: Float64Array
  /** c, in the plane. */
  output: Point
  /** −Σ ᾱ ln ᾱ, in nats. */
  entropy: number
  /** exp(entropy): over how many keys the reading is spread. */
  effective: number
}

export interface Noise {
  /** The key that is noisy along itself; −1 for none. */
  key: number
  /** v of Σ = σ²I + v μμᵀ. */
  variance: number
  /** σ², the same for every key. */
  isotropic: number
}

export function matrix(rows: readonly (readonly number[])[]): Matrix {
  const columns = rows[0]?.length ?? 0
  const data = new Float64Array(rows.length * columns)
  rows.forEach((row, i) => data.set(row, i * columns))
  return { rows: rows.length, columns, data }
}

/** s k_i·q for every key. */
export function logits(keys: Matrix, query: ArrayLike<number>, scale: number): Float64Array {
  const { rows, columns, data } = keys
  const result = new Float64Array(rows)
  for (let i = 0; i < rows; i++) {
    let sum = 0
    for (let j = 0; j < columns; j++) sum += data[i * columns + j] * query[j]
    result[i] = scale * sum
  }
  return result
}

/** exp(z) scaled to sum to 1; the largest is subtracted first, so that nothing overflows. */
export function softmax(z: Float64Array): Float64Array {
  let peak = -Infinity
  for (const value of z) if (value > peak) peak = value
  const result = new Float64Array(z.length)
  let total = 0
  for (let i = 0; i < z.length; i++) total += result[i] = Math.exp(z[i] - peak)
  for (let i = 0; i < z.length; i++) result[i] /= total
  return result
}

/** What the heads read together: the average of their outputs. */
export function read(
  keys: Matrix,
  values: readonly Point[],
  queries: readonly ArrayLike<number>[],
  scale: number,
): Reading {
  const heads = queries.map((query) => softmax(logits(keys, query, scale)))
  const weights = new Float64Array(keys.rows)
  for (const alpha of heads) for (let i = 0; i < weights.length; i++) weights[i] += alpha[i] / heads.length
  let entropy = 0
  for (const share of weights) if (share > 0) entropy -= share * Math.log(share)
  entropy = Math.max(0, entropy)
  return { heads, weights, output: mix(weights, values), entropy, effective: Math.exp(entropy) }
}

/** Σ w_i v_i in the plane. */
export function mix(weights: ArrayLike<number>, values: readonly Point[]): Point {
  let x = 0
  let y = 0
  for (let i = 0; i < values.length; i++) {
    x += weights[i] * values[i][0]
    y += weights[i] * values[i][1]
  }
  return [x, y]
}

/** How many standard normal numbers one draw of the keys takes. */
export function normalsPerDraw(keys: Matrix, noise: Noise): number {
  return 1 + (noise.isotropic > 0 ? keys.rows * keys.columns : 0)
}

/**
 * The outputs over draws of the keys k_i = μ_i + σ η_i (+ √v ξ μ_i for the noisy one); the heads
 * share the draw. Each draw takes ξ, and then η row by row, from `normals`.
 */
export function noisyOutputs(
  keys: Matrix,
  values: readonly Point[],
  queries: readonly ArrayLike<number>[],
  scale: number,
  noise: Noise,
  normals: Float64Array,
): Float64Array {
  const { rows, columns } = keys
  const each = normalsPerDraw(keys, noise)
  const draws = Math.floor(normals.length / each)
  const means = queries.map((query) => logits(keys, query, scale))
  const along = Math.sqrt(Math.max(0, noise.variance))
  const sigma = Math.sqrt(Math.max(0, noise.isotropic))
  const result = new Float64Array(2 * draws)
  const z = new Float64Array(rows)
  for (let draw = 0; draw < draws; draw++) {
    const start = draw * each
    let x = 0
    let y = 0
    for (let head = 0; head < queries.length; head++) {
      z.set(means[head])
      if (noise.key >= 0) z[noise.key] += along * normals[start] * means[head][noise.key]
      if (sigma > 0) {
        const query = queries[head]
        for (let i = 0; i < rows; i++) {
          let sum = 0
          const offset = start + 1 + i * columns
          for (let j = 0; j < columns; j++) sum += normals[offset + j] * query[j]
          z[i] += scale * sigma * sum
        }
      }
      const [cx, cy] = mix(softmax(z), values)
      x += cx / queries.length
      y += cy / queries.length
    }
    result[2 * draw] = x
    result[2 * draw + 1] = y
  }
  return result
}

/** Standard normal numbers that are the same for the same seed. */
export function normalNumbers(count: number, seed: number): Float64Array {
  let state = (seed + 0x9e3779b9) >>> 0
  const uniform = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const result = new Float64Array(count)
  for (let i = 0; i < count; i += 2) {
    const radius = Math.sqrt(-2 * Math.log(1 - uniform()))
    const angle = 2 * Math.PI * uniform()
    result[i] = radius * Math.cos(angle)
    if (i + 1 < count) result[i + 1] = radius * Math.sin(angle)
  }
  return result
}

/** The corners of the convex hull, counter-clockwise, as positions in `points`. */
export function hull(points: readonly Point[]): number[] {
  const order = points.map((_, i) => i).sort((a, b) => points[a][0] - points[b][0] || points[a][1] - points[b][1])
  const turn = (o: number, a: number, b: number): number =>
    (points[a][0] - points[o][0]) * (points[b][1] - points[o][1]) -
    (points[a][1] - points[o][1]) * (points[b][0] - points[o][0])
  const half = (sequence: number[]): number[] => {
    const chain: number[] = []
    for (const next of sequence) {
      while (chain.length > 1 && turn(chain[chain.length - 2], chain[chain.length - 1], next) <= 0) chain.pop()
      chain.push(next)
    }
    chain.pop()
    return chain
  }
  if (order.length < 3) return order
  return [...half(order), ...half(order.reverse())]
}

export interface Ellipse {
  /** Half the length of the long and the short axis: one standard deviation. */
  long: number
  short: number
  /** Angle of the long axis, in radians. */
  angle: number
}

/** The one-deviation ellipse of a covariance in the plane. */
export function ellipse(covariance: readonly (readonly number[])[]): Ellipse {
  const [[a, b], [, c]] = covariance as [[number, number], [number, number]]
  const middle = (a + c) / 2
  const apart = Math.hypot((a - c) / 2, b)
  return {
    long: Math.sqrt(Math.max(0, middle + apart)),
    short: Math.sqrt(Math.max(0, middle - apart)),
    angle: Math.atan2(2 * b, a - c) / 2,
  }
}

/** P k for each key. */
export function project(keys: Matrix, plane: readonly (readonly number[])[]): Point[] {
  const result: Point[] = []
  for (let i = 0; i < keys.rows; i++) {
    result.push([0, 1].map((axis) => {
      let sum = 0
      for (let j = 0; j < keys.columns; j++) sum += plane[axis][j] * keys.data[i * keys.columns + j]
      return sum
    }) as Point)
  }
  return result
}

/** The vector moved so that it is drawn at a point; what lies off the plane stays as it is. */
export function movedTo(vector: readonly number[], point: Point, plane: readonly (readonly number[])[]): number[] {
  const now = [0, 1].map((axis) => plane[axis].reduce((sum, share, j) => sum + share * vector[j], 0))
  return vector.map((entry, j) => entry + plane[0][j] * (point[0] - now[0]) + plane[1][j] * (point[1] - now[1]))
}
