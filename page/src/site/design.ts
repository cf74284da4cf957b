/**
 * Queries made to order, with their certificate, as `heedful.attention.design` defines them: the query keeps
 * the ratios of the wanted weights on S and has mass ≥ 1 − ε there; the shortest one is a convex problem.
 * Every number of a certificate is computed here from the keys; `tests/web/test_site.py` holds both sides
 * to the same figures.
 */

import type { Certificate, DesignAnswer } from '../lib/attention.svelte'
import { logits, matrix, softmax } from '../lib/mathematics'
import { combined, dot, eye, nonNegative, norm, plus, root, scaled, solved, svd, times, zeros, type Rows, type Vector } from './linear'
import { figures } from './words'

const EPSILON = 2 ** -52

export interface Separation {
  verdict: 'outside' | 'inside' | 'borderline'
  /** Distance of 0 from the hull. */
  distance: number
  /** The unit direction away from it; none if 0 is inside. */
  direction: Vector
  /** λ, one a point: the nearest point of the hull. */
  weights: Vector
}

/** Whether 0 lies outside the hull of some points: one non-negative least-squares problem, checked in float64. */
export function separate(points: Rows, d: number, rounding?: number): Separation {
  if (!points.length) return { verdict: 'outside', distance: Infinity, direction: eye(1, d)[0], weights: [] }
  const size = Math.max(...points.map((row) => Math.max(...row.map(Math.abs))))
  const longest = Math.max(...points.map(norm))
  const slack = rounding ?? 2 * (d + 4) * EPSILON * longest
  const even = points.map(() => 1 / points.length)
  if (size <= slack) return { verdict: 'inside', distance: 0, direction: zeros(d), weights: even }
  const found = nonNegative(points.map((row) => [...scaled(row, 1 / size), 1]), [...zeros(d), 1])
  const total = found.reduce((sum, share) => sum + share, 0)
  const weights = total > 0 ? scaled(found, 1 / total) : even
  const point = combined(weights, points, d)
  const distance = norm(point)
  if (distance <= 4 * slack) return { verdict: 'inside', distance, direction: zeros(d), weights }
  const direction = scaled(point, -1 / distance)
  const lead = Math.min(...points.map((row) => -dot(row, direction)))
  return { verdict: lead > slack ? 'outside' : 'borderline', distance, direction, weights }
}

const logSumExp = (x: Vector): number => {
  const peak = Math.max(...x)
  return peak + Math.log(x.reduce((sum, one) => sum + Math.exp(one - peak), 0))
}
const entropy = (p: Vector): number => -p.reduce((sum, share) => sum + (share > 0 ? share * Math.log(share) : 0), 0)
const shares = (x: Vector): Vector => Array.from(softmax(Float64Array.from(x)))
const expit = (x: number): number => 1 / (1 + Math.exp(-x))

/** z ↦ LSE(Bz + c): how much the keys outside S hold against S. */
class Outside {
  constructor(readonly B: Rows, readonly c: Vector) {}

  at(z: Vector): Vector {
    return this.B.map((row, l) => dot(row, z) + this.c[l])
  }

  /** Minimise ½ ridge ‖y‖² + multiplier · LSE by Newton's method, damped where the curve is flat. */
  minimised(multiplier: number, start: Vector, ridge: number): Vector {
    const precise = (ridge ? 1e-10 : 1e-12) * Math.max(1, multiplier)
    const value = (y: Vector): number => 0.5 * ridge * dot(y, y) + multiplier * logSumExp(this.at(y))
    let y = start
    let now = value(y)
    let damping = 1e-12
    for (let round = 0; round < 400; round++) {
      const p = shares(this.at(y))
      const mean = combined(p, this.B, y.length)
      const gradient = y.map((entry, j) => ridge * entry + multiplier * mean[j])
      if (norm(gradient) <= precise) break
      const curved = eye(y.length).map((row, i) => row.map((one, j) => {
        let sum = -mean[i] * mean[j]
        this.B.forEach((b, l) => (sum += p[l] * b[i] * b[j]))
        return one * ridge + multiplier * sum
      }))
      let moved = false
      for (let tries = 0; tries < 60 && !moved; tries++) {
        const step = solved(curved, scaled(gradient, -1), damping * Math.max(1, multiplier))
        const next = step && plus(y, step)
        const then = next ? value(next) : Infinity
        if (next && then < now) {
          y = next
          now = then
          damping = Math.max(1e-14, damping / 8)
          moved = true
        } else damping *= 4
      }
      if (!moved) break
    }
    return y
  }

  /** The smallest t ≥ 0 with LSE(t·along + c) ≤ level; t = far must reach it. */
  smallestScale(along: Vector, c: Vector, level: number, far: number): number {
    const excess = (t: number): number => logSumExp(along.map((slope, l) => t * slope + c[l])) - level
    if (excess(0) <= 0) return 0
    if (excess(far) >= 0) return far
    let t = root(excess, 0, far)
    for (let nudge = EPSILON; excess(t) > 0 && t < far; nudge *= 2) t = Math.min(far, t * (1 + nudge))
    return t
  }

  /** The first point on the way from z to one that reaches the level. */
  walked(level: number, z: Vector, reaching: Vector): Vector {
    const way = plus(reaching, z, -1)
    const step = this.smallestScale(times(this.B, way), this.at(z), level, 1)
    return step === 1 ? reaching : plus(z, way, step)
  }

  /** The shortest z with LSE(Bz + c) ≤ level. */
  shortest(level: number, reaching: Vector): Vector {
    if (logSumExp(this.c) <= level) return zeros(reaching.length)
    const length = norm(reaching)
    const unit = new Outside(this.B.map((row) => scaled(row, length)), this.c)
    const end = scaled(reaching, 1 / length)
    let y = end
    const excess = (log: number): number => {
      y = unit.minimised(Math.exp(log), y, 1)
      return logSumExp(unit.at(y)) - level
    }
    const slope = norm(combined(shares(unit.at(end)), unit.B, end.length))
    let low = -Math.log(Math.max(slope, 1e-300))
    let high = low
    let step = 0.5
    if (excess(low) > 0) while (excess(high) > 0 && step < 256) [low, high, step] = [high, high + step, step * 2]
    else while (excess(low) < 0 && step < 256) [high, low, step] = [low, low - step, step * 2]
    for (let round = 0; round < 60 && high - low > 1e-9; round++) {
      const middle = (low + high) / 2
      if (excess(middle) > 0) low = middle
      else high = middle
    }
    excess(high)
    y = unit.walked(level, y, end)
    y = scaled(y, unit.smallestScale(times(unit.B, y), this.c, level, 1))
    return scaled(y, length)
  }

  /** The norm below which no z reaches the level, by weak duality. */
  normBound(level: number, z: Vector): number {
    const p = shares(this.at(z))
    const slope = norm(combined(p, this.B, z.length))
    return slope > 0 ? Math.max(0, (entropy(p) + dot(p, this.c) - level) / slope) : 0
  }

  lowest(d: number): { z: Vector; value: number; p: Vector } {
    const size = Math.max(...this.B.map(norm))
    const z = size ? scaled(new Outside(this.B.map((row) => scaled(row, 1 / size)), this.c).minimised(1, zeros(d), 0), 1 / size) : zeros(d)
    const x = this.at(z)
    return { z, value: logSumExp(x), p: shares(x) }
  }
}

/** The problem in numbers of order one: x = q · extent · scale. */
interface Ratios {
  keys: Rows
  extent: number
  support: number[]
  others: number[]
  q0: Vector
  outside: Outside
  rounding: number
  /** Takes a vector in the span of k_i − κ to coefficients on S. */
  solver: (aim: Vector) => Vector
  kappa: Vector
}

function fixRatios(keys: Rows, of: number[]): Ratios {
  const d = keys[0].length
  const mean = scaled(combined(keys.map(() => 1), keys), 1 / keys.length)
  const centred = keys.map((row) => plus(row, mean, -1))
  const largest = Math.max(...centred.map((row) => Math.max(...row.map(Math.abs))))
  const extent = largest > 0 ? 2 ** (Math.floor(Math.log2(largest)) + 1) : 1
  const small = centred.map((row) => scaled(row, 1 / extent))
  const others = small.map((_, i) => i).filter((i) => !of.includes(i))
  const share = 1 / of.length
  const kappa = scaled(combined(of.map(() => 1), of.map((i) => small[i]), d), share)
  const A = of.map((i) => plus(small[i], kappa, -1))
  const found = svd(A)
  const rank = found.singular.filter((size) => size > 1e-10).length
  const right = found.right.slice(0, rank)
  const solver = (aim: Vector): Vector => {
    const inner = right.map((row, k) => dot(row, aim) / found.singular[k])
    return of.map((_, i) => inner.reduce((sum, entry, k) => sum + entry * found.left[k][i], 0))
  }
  const rows = others.map((l) => plus(small[l], kappa, -1))
  const size = Math.max(0, ...rows.map(norm))
  const rounding = (d + 8) * EPSILON * Math.max(size, 1) * (rank ? 4 : 1)
  // Equal shares: the wanted logs are level on S, so q0 = 0, and the others start at ln(1/m).
  const B = rows.map((row) => {
    const rest = right.reduce((left, axis) => plus(left, axis, -dot(axis, row)), row)
    return norm(rest) <= rounding ? zeros(d) : rest
  })
  const c = rows.map(() => Math.log(share))
  return { keys: small, extent, support: of, others, q0: zeros(d), outside: new Outside(B, c), rounding, solver, kappa }
}

interface Candidate {
  query: Vector
  mass: number
  error: number
}

/** One order for a query: the same value, or the mean of some. */
class Order {
  readonly level: number
  readonly ratios: Ratios

  constructor(readonly keys: Rows, readonly of: number[], readonly tolerance: number, readonly scale: number) {
    this.level = Math.log(tolerance) - Math.log1p(-tolerance)
    this.ratios = fixRatios(keys, of)
  }

  get name(): string {
    if (this.of.length === 1) return `key ${this.of[0]}`
    return `keys {${this.of.slice(0, 6).join(', ')}${this.of.length > 6 ? ', …' : ''}}`
  }

  query(x: Vector): Vector {
    return scaled(x, 1 / (this.ratios.extent * this.scale))
  }

  /** What attention truly gives for a query. */
  read(x: Vector): Candidate {
    const query = this.query(x)
    const weights = softmax(logits(matrix(this.keys), query, this.scale))
    let mass = 0
    let error = 0
    weights.forEach((share, i) => {
      const wanted = this.of.includes(i)
      if (wanted) mass += share
      error += Math.abs(share - (wanted ? 1 / this.of.length : 0)) / 2
    })
    return { query, mass, error }
  }

  /** The shortest query that reaches the tolerance when attention reads with it. */
  least(reaching: Vector, onRay: boolean): Candidate | null {
    const { outside } = this.ratios
    let z = onRay ? scaled(reaching, outside.smallestScale(times(outside.B, reaching), outside.c, this.level, 1)) : outside.shortest(this.level, reaching)
    let candidate = this.read(z)
    for (let power = 16; power > 6; power--) {
      if (power < 16) {
        z = outside.walked(this.level - 10 ** -power * Math.max(1, Math.abs(this.level)), z, reaching)
        candidate = this.read(z)
      }
      if (candidate.mass >= 1 - this.tolerance && candidate.error <= this.tolerance) return candidate
    }
    return candidate.mass >= 1 - this.tolerance && candidate.error <= this.tolerance + 1e-9 ? candidate : null
  }

  normLowerBound(query: Vector): number {
    const { outside, extent } = this.ratios
    const x = scaled(query, extent * this.scale)
    const least = logSumExp(outside.c) > this.level ? outside.normBound(this.level, x) : 0
    return least / (extent * this.scale)
  }
}

const NOTHING: Certificate = {
  kind: '', statement: '', margin: null, combination: null, ceiling: null, floor: null, closed_form: null, best_mass: null, norm_lower_bound: null,
}

type Found = NonNullable<DesignAnswer['design']>

function answer(order: Order, certificate: Partial<Certificate>, candidate: Candidate | null = null, beta: number | null = null): Found {
  return {
    feasible: candidate !== null, beta, query: candidate?.query ?? null, norm: candidate ? norm(candidate.query) : null, mass: candidate?.mass ?? null,
    error: candidate?.error ?? null, tolerance: order.tolerance, of: order.of, certificate: { ...NOTHING, ...certificate },
  }
}

/** The squared distance of any two keys, if it is always the same. */
function squaredSide(keys: Rows): number | null {
  const n = keys.length
  if (n < 2 || n > keys[0].length + 1) return null
  const side = (2 * keys.reduce((sum, row) => sum + dot(row, row), 0)) / (n - 1)
  const even = keys.every((row, i) => keys.every((other, j) => Math.abs(dot(row, other) - (side / 2) * ((i === j ? 1 : 0) - 1 / n)) <= 1e-13 * side))
  return side > 0 && even ? side : null
}

/** The shortest query whose output is the mean of some values, or why there is none. */
export function designQuery(keys: Rows, of: number[], tolerance: number, scale: number): Found {
  const order = new Order(keys, [...of].sort((a, b) => a - b), tolerance, scale)
  const { ratios } = order
  if (!ratios.others.length) {
    const candidate = order.read(ratios.q0)
    return answer(order, {
      kind: 'every key', norm_lower_bound: 0,
      statement: 'Every key is wanted, so no mass can be lost: the shortest query with the wanted ratios has norm 0, and no scale is needed (β = 0).',
    }, candidate, 0)
  }
  const side = squaredSide(ratios.keys)
  if (side !== null) return onFace(order, scaled(combined(of.map(() => 1), of.map((i) => ratios.keys[i])), 2 / side), true)
  const separation = separate(ratios.outside.B, keys[0].length, ratios.rounding)
  if (separation.verdict !== 'outside') return offFace(order, separation)
  const lead = Math.min(...ratios.outside.B.map((row) => -dot(row, separation.direction)))
  return onFace(order, scaled(separation.direction, 1 / lead), false)
}

function onFace(order: Order, u: Vector, equidistant: boolean): Found {
  const { ratios, tolerance, level } = order
  const { outside, keys, extent } = ratios
  const along = times(outside.B, u)
  const total = logSumExp(outside.c)
  const beta = equidistant
    ? Math.max(0, Math.log(ratios.others.length) - Math.log(order.of.length) - level)
    : outside.smallestScale(along, outside.c, level, (total - level) / -Math.max(...along))
  const candidate = order.least(scaled(u, Math.max(0, total - level) + 1), equidistant)
  if (!candidate) throw new Error(`design: float64 cannot hold a query with mass ${figures(1 - tolerance, 12)} on ${order.name}; take a looser tolerance`)
  const seen = times(keys, scaled(u, 1 / norm(u)))
  const margin = extent * (Math.min(...order.of.map((i) => seen[i])) - Math.max(...ratios.others.map((l) => seen[l])))
  return answer(order, {
    kind: 'separating direction', margin,
    statement:
      `The direction u puts ${order.name} at least 1 above every other key (margin ${figures(margin, 6)} for a unit direction), and β = ${figures(beta, 6)} is the smallest ` +
      `scale of u that reaches ε = ${figures(tolerance, 6)}. The query has mass ${figures(candidate.mass, 6)} on ${order.name}: whatever the values are, the output is off by at most ` +
      `${figures(candidate.error, 3)} of their diameter.`,
    norm_lower_bound: order.normLowerBound(candidate.query),
    closed_form: equidistant ? 'β = ln((n−m)(1−ε)/(mε))' : null,
  }, candidate, beta)
}

/** S fills no face: reach the tolerance all the same, or cap the mass on S by a combination of others. */
function offFace(order: Order, separation: Separation): Found {
  const { ratios, tolerance } = order
  const { outside } = ratios
  const least = outside.lowest(order.keys[0].length)
  const best = expit(-least.value)
  const candidate = least.value <= order.level + 1e-12 ? order.least(least.z, false) : null
  const named = (combination: Vector): Record<string, number> => Object.fromEntries(ratios.others.map((l, place) => [String(l), combination[place]] as const).filter(([, share]) => share !== 0))
  if (candidate) {
    const subject = order.name[0].toUpperCase() + order.name.slice(1)
    return answer(order, {
      kind: 'bounded search', best_mass: best, combination: named(separation.weights), norm_lower_bound: order.normLowerBound(candidate.query),
      statement:
        `${subject} cannot be told apart from the rest by any direction, so there is no β for every tolerance; ε = ${figures(tolerance, 6)} is within reach all the same: ` +
        `the largest mass any query with these ratios can have there is ${figures(best, 6)}.`,
    }, candidate)
  }
  if (separation.verdict === 'borderline') {
    return nearest(order, {
      kind: 'borderline', best_mass: best,
      statement: `Within rounding it cannot be decided whether ${order.name} can be read alone: the lead is at most ${figures(separation.distance, 3)} of the keys’ extent. The largest mass found is ${figures(best, 6)}.`,
    }, 1 - best)
  }
  const ceilingOf = (combination: Vector): number => expit(-entropy(combination) - dot(combination, outside.c))
  let combination = separation.weights
  if (ceilingOf(combination) >= 1 - tolerance) combination = least.p
  const ceiling = ceilingOf(combination)
  const one = order.of.length === 1
  const carried = combination.filter((share) => share > 0).length
  return nearest(order, {
    kind: 'convex combination', combination: named(combination), ceiling, best_mass: best, floor: errorFloor(order, combination),
    statement:
      `${one ? `Key ${order.of[0]} is` : `An affine combination of ${order.name} is`} a convex combination of other keys (${carried} of them), so no query${one ? '' : ' with the wanted ratios'} leads them all: ` +
      `the mass on ${order.name} stays at or below ${one ? '1/(1 + exp(H(λ)))' : '1/(1 + exp(H(λ) + Σ a_i ln w_i))'} = ${figures(ceiling, 6)}, and ${figures(1 - tolerance, 6)} is asked.`,
  }, 1 - best)
}

/** A total variation that no query whatsoever can go below: see `error_floor` in Python. */
function errorFloor(order: Order, combination: Vector): number {
  const { ratios } = order
  const m = order.of.length
  const aim = plus(combined(combination, ratios.others.map((l) => ratios.keys[l])), ratios.kappa, -1)
  const shift = ratios.solver(aim)
  const moved = shift.reduce((sum, entry) => sum + entry, 0)
  const a = shift.map((entry) => 1 / m + entry - moved / m)
  if (!a.some((entry) => entry > 0)) return 0
  const excess = (epsilon: number): number =>
    a.reduce((sum, entry) => sum + (entry > 0 ? entry * Math.log(1 / m - epsilon) : entry < 0 ? entry * Math.log(1 / m + epsilon) : 0), 0) + entropy(combination) - Math.log(epsilon)
  const [low, high] = [1e-300, (1 / m) * (1 - 1e-15)]
  if (excess(low) <= 0) return 0
  return excess(high) >= 0 ? high : root(excess, low, high)
}

/** Other shares may still come near enough: minimise KL(w‖α), and take the first query within the tolerance. */
function nearest(order: Order, proof: Partial<Certificate>, bestError: number): Found {
  if (order.of.length === 1) return answer(order, proof)
  const { ratios } = order
  const around = new Outside(ratios.keys.map((row) => plus(row, ratios.kappa, -1)), zeros(ratios.keys.length))
  let y = zeros(order.keys[0].length)
  let best: Candidate | null = null
  for (let power = 0; power <= 13; power++) {
    y = around.minimised(1, y, power < 13 ? 10 ** -power : 0)
    const candidate = order.read(y)
    if (!best || candidate.error < best.error) best = candidate
    if (candidate.error <= order.tolerance) break
  }
  const error = best!.error
  if (error <= order.tolerance) {
    return answer(order, {
      ...proof, kind: 'nearest found',
      statement: `${proof.statement} The nearest weights found are within ${figures(error, 3)} of the wanted ones in total variation, and ε = ${figures(order.tolerance, 6)} is asked.`,
    }, best)
  }
  const floor = proof.floor ?? 0
  const verdict = order.tolerance < floor ? `no query at all comes closer than ${figures(floor, 6)}: impossible` : `nothing closer was found (proved: none below ${figures(floor, 3)})`
  return answer(order, {
    ...proof,
    statement: `${proof.statement} The nearest weights found err by ${figures(Math.min(error, bestError), 6)} and ε = ${figures(order.tolerance, 6)} is asked; ${verdict}.`,
  })
}
