/**
 * What noisy keys do to heads, as `heedful.attention.noise` defines it.
 *
 * One key that is noisy along itself moves one logit a head: with ξ standard normal, head h gives it
 * σ_h = 1/(1 + exp(−a_h − ℓ_h ξ)), and the other keys keep their ratios. Moments are then integrals over
 * one normal, by the trapezoidal rule, whose error falls geometrically (Trefethen and Weideman 2014); the
 * probability of a failure is enclosed by cutting the line into pieces on which σ_h is monotone. With noise
 * in every direction the answer comes from draws, with Wilson's interval.
 */

import type { LayerNoise } from '../lib/attention.svelte'
import { mix, normalNumbers, softmax, type Point } from '../lib/mathematics'
import { dot, eye, svd, times, zeros, type Rows, type Vector } from './linear'

export interface NoisyKeys {
  keys: Rows
  values: Point[]
  scale: number
  /** The key that is noisy along itself, with its variance; none: null. */
  noisy: number | null
  variance: number
  isotropic: number
}

export interface NoiseQuestion extends Omit<NoisyKeys, 'scale'> {
  scale: number | 'sqrt_d'
  layers: Rows[]
  of: number[]
  radius: number
}

const REACH = 8.3 // |ξ| stays below this but for a probability of 1e-16
const DRAWS = 4000
export const scaleOf = (scale: number | 'sqrt_d', d: number): number => (scale === 'sqrt_d' ? 1 / Math.sqrt(d) : scale)

/** Φ(−x) for any x, to about 1e-15 of itself. */
export function tail(x: number): number {
  if (x < 0) return 1 - tail(-x)
  if (x < 3) {
    let term = x
    let sum = x
    for (let k = 1; Math.abs(term) > 1e-18 * sum; k++) sum += term *= (x * x) / (2 * k + 1)
    return 0.5 - (sum * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI)
  }
  let fraction = x + 120
  for (let k = 120; k > 0; k--) fraction = x + k / fraction
  return Math.exp((-x * x) / 2) / (Math.sqrt(2 * Math.PI) * fraction)
}
const between = (low: number, high: number): number => (low > 0 ? tail(low) - tail(high) : tail(-high) - tail(-low))
const sigmoid = (x: number): number => (x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x)))

export interface Moments {
  weights: Vector
  deviations: Vector
  mean: Point
  covariance: Rows
}

/** The heads of a layer, seen from the one noisy key: σ_h and what the others share. */
export class OneNoisyKey {
  readonly heads: number
  /** What each key gets of a head's reading beside the noisy one. */
  readonly rest: Rows
  readonly start: Vector
  readonly slopes: Vector
  /** v_noisy − (what the head reads beside it), for each head. */
  readonly pull: Point[]
  readonly base: Point

  constructor(readonly given: NoisyKeys, queries: Rows) {
    const { keys, values, scale, variance } = given
    const noisy = given.noisy ?? 0
    const z = queries.map((query) => times(keys, query).map((logit) => scale * logit))
    this.heads = queries.length
    this.rest = z.map((row) => Array.from(softmax(Float64Array.from(row.map((logit, i) => (i === noisy ? -Infinity : logit))))).map((share) => (Number.isNaN(share) ? 0 : share)))
    this.start = z.map((row) => {
      const others = row.filter((_, i) => i !== noisy)
      if (!others.length) return Infinity
      const peak = Math.max(...others)
      return row[noisy] - peak - Math.log(others.reduce((sum, logit) => sum + Math.exp(logit - peak), 0))
    })
    this.slopes = z.map((row) => (given.noisy === null ? 0 : Math.sqrt(Math.max(0, variance)) * row[noisy]))
    const read = this.rest.map((shares) => mix(shares, values))
    this.pull = read.map(([x, y]) => [values[noisy][0] - x, values[noisy][1] - y] as Point)
    this.base = [0, 1].map((axis) => read.reduce((sum, point) => sum + point[axis], 0) / this.heads) as Point
  }

  /** σ of each head at ξ. */
  at(xi: number): Vector {
    return this.start.map((start, h) => sigmoid(start + this.slopes[h] * xi))
  }

  output(sigma: Vector): Point {
    return [0, 1].map((axis) => this.base[axis] + sigma.reduce((sum, share, h) => sum + share * this.pull[h][axis], 0) / this.heads) as Point
  }

  /** Mean and covariance of weights and output, by the trapezoidal rule. */
  moments(): Moments {
    const H = this.heads
    const steepest = Math.max(...this.slopes.map(Math.abs))
    // The step for which the rule errs by less than 1e-14: see `plan` in attention/distribution.py.
    const widest = Math.min(steepest > 0 ? Math.PI / steepest : Infinity, 9)
    let step = 0
    for (let part = 0.02; part < 0.99; part += 0.02) {
      const a = widest * part
      step = Math.max(step, (2 * Math.PI * a) / Math.log1p((2 * Math.exp((a * a) / 2)) / Math.cos((steepest * a) / 2) ** 2 / 1e-14))
    }
    const count = Math.ceil(REACH / step)
    const mean = zeros(H)
    const second = eye(H).map((row) => row.map(() => 0))
    let total = 0
    const pivot = this.at(0) // moments about it: nothing cancels
    for (let k = -count; k <= count; k++) {
      const weight = Math.exp(-0.5 * (k * step) ** 2)
      const moved = this.at(k * step).map((share, h) => share - pivot[h])
      total += weight
      for (let g = 0; g < H; g++) {
        mean[g] += weight * moved[g]
        for (let h = 0; h < H; h++) second[g][h] += weight * moved[g] * moved[h]
      }
    }
    const covariance = second.map((row, g) => row.map((sum, h) => sum / total - (mean[g] / total) * (mean[h] / total)))
    const sigma = mean.map((sum, h) => pivot[h] + sum / total)
    const noisy = this.given.noisy ?? 0
    const form = (a: Vector, b: Vector): number => dot(a, times(covariance, b)) / (H * H)
    const weights = this.given.keys.map((_, i) => (i === noisy ? sigma.reduce((sum, share) => sum + share, 0) : sigma.reduce((sum, share, h) => sum + (1 - share) * this.rest[h][i], 0)) / H)
    const deviations = this.given.keys.map((_, i) => {
      const along = i === noisy ? sigma.map(() => 1) : this.rest.map((shares) => shares[i])
      return Math.sqrt(Math.max(0, form(along, along)))
    })
    const axes = [0, 1].map((axis) => this.pull.map((point) => point[axis]))
    return { weights, deviations, mean: this.output(sigma), covariance: axes.map((a) => axes.map((b) => form(a, b))) }
  }

  /** P(‖c − t‖ > ε), between two numbers that are certain but for rounding. */
  failure(target: Point, radius: number): { value: number; low: number; high: number } {
    const distance = (xi: number): number => {
      const [x, y] = this.output(this.at(xi))
      return Math.hypot(x - target[0], y - target[1])
    }
    const reach = this.pull.map(([x, y]) => Math.hypot(x, y) / this.heads)
    const slack = 1e-13 * (1 + Math.max(...reach))
    let failing = 0
    let undecided = 0
    let guess = 0
    let open: [number, number][] = Array.from({ length: 64 }, (_, i) => [-REACH + (i * REACH) / 32, -REACH + ((i + 1) * REACH) / 32])
    for (let seen = 0; open.length; ) {
      const next: [number, number][] = []
      for (const [low, high] of open) {
        const middle = (low + high) / 2
        const [before, centre, after] = [this.at(low), this.at(middle), this.at(high)]
        const change = reach.reduce((sum, size, h) => sum + size * Math.max(Math.abs(before[h] - centre[h]), Math.abs(after[h] - centre[h])), 0)
        const apart = distance(middle)
        const mass = between(low, high)
        seen++
        if (Math.abs(apart - radius) > change + slack) failing += apart > radius ? mass : 0
        else if (mass < 1e-9 || seen > 40_000 || high - low < 1e-13) {
          undecided += mass
          guess += apart > radius ? mass : 0
        } else next.push([low, middle], [middle, high])
      }
      open = next
    }
    const high = Math.min(1, failing + undecided + 2 * tail(REACH))
    return { value: Math.min(failing + guess, high), low: Math.min(failing, 1), high }
  }

  /** The failure probability as the queries grow: each head reads one key, ties shared. */
  limit(logits: Rows, target: Point, radius: number): number | null {
    const { values } = this.given
    const noisy = this.given.noisy ?? 0
    const tie = 1e-11 * Math.max(1e-300, ...logits.flat().map(Math.abs))
    const still = logits.map((row, h) => {
      const seen = row.map((logit, i) => (i === noisy && this.slopes[h] !== 0 && row.length > 1 ? -Infinity : logit))
      const peak = Math.max(...seen)
      const chosen = seen.map((logit) => (logit >= peak - tie ? 1 : 0))
      const many = chosen.reduce<number>((sum, one) => sum + one, 0)
      return { peak, output: mix(chosen.map((one) => one / many), values) }
    })
    const thresholds = this.slopes.map((slope, h) => (slope === 0 || logits[h].length < 2 ? NaN : (still[h].peak - logits[h][noisy]) / slope))
    const ends = [-Infinity, ...[...new Set(thresholds.filter(Number.isFinite))].sort((a, b) => a - b), Infinity]
    let failing = 0
    for (let place = 0; place + 1 < ends.length; place++) {
      const [low, high] = [ends[place], ends[place + 1]]
      const outputs = still.map(({ output }, h) => ((this.slopes[h] > 0 ? low >= thresholds[h] : high <= thresholds[h]) ? values[noisy] : output))
      const c = [0, 1].map((axis) => outputs.reduce((sum, point) => sum + point[axis], 0) / this.heads)
      const apart = Math.hypot(c[0] - target[0], c[1] - target[1])
      if (Math.abs(apart - radius) <= 1e-9) return null
      if (apart > radius) failing += between(Math.max(low, -40), Math.min(high, 40))
    }
    return Math.min(1, failing)
  }
}

/** Outputs and weights over draws of the keys: only logits are drawn, s σ‖q‖ η for each key. */
export function drawn(given: NoisyKeys, queries: Rows, draws: number, seed: number): { weights: Float64Array; outputs: Float64Array } {
  const { keys, values, scale } = given
  const [n, H] = [keys.length, queries.length]
  const { left, singular } = svd(queries)
  const factor = queries.map((_, h) => singular.map((size, k) => scale * Math.sqrt(Math.max(0, given.isotropic)) * size * left[k][h]))
  const means = queries.map((query) => times(keys, query).map((logit) => scale * logit))
  const along = Math.sqrt(Math.max(0, given.variance))
  const each = 1 + n * singular.length
  const normals = normalNumbers(draws * each, seed)
  const weights = new Float64Array(draws * n)
  const outputs = new Float64Array(2 * draws)
  for (let draw = 0; draw < draws; draw++) {
    const start = draw * each
    for (let h = 0; h < H; h++) {
      const z = new Float64Array(n)
      for (let i = 0; i < n; i++) {
        let logit = means[h][i] * (i === given.noisy ? 1 + along * normals[start] : 1)
        for (let k = 0; k < singular.length; k++) logit += factor[h][k] * normals[start + 1 + i * singular.length + k]
        z[i] = logit
      }
      const alpha = softmax(z)
      for (let i = 0; i < n; i++) {
        const share = alpha[i] / H
        weights[draw * n + i] += share
        outputs[2 * draw] += share * values[i][0]
        outputs[2 * draw + 1] += share * values[i][1]
      }
    }
  }
  return { weights, outputs }
}

function sampledMoments(given: NoisyKeys, queries: Rows): Moments & { outputs: Float64Array } {
  const n = given.keys.length
  const { weights, outputs } = drawn(given, queries, DRAWS, 11)
  const column = (data: Float64Array, width: number, j: number): Vector => Array.from({ length: DRAWS }, (_, draw) => data[draw * width + j])
  const average = (numbers: Vector): number => numbers.reduce((sum, one) => sum + one, 0) / numbers.length
  const spread = (a: Vector, b: Vector): number => {
    const [mean, other] = [average(a), average(b)]
    return a.reduce((sum, one, i) => sum + (one - mean) * (b[i] - other), 0) / (a.length - 1)
  }
  const axes = [0, 1].map((axis) => column(outputs, 2, axis))
  const keys = Array.from({ length: n }, (_, i) => column(weights, n, i))
  return {
    weights: keys.map(average), deviations: keys.map((one) => Math.sqrt(spread(one, one))), mean: axes.map(average) as Point,
    covariance: axes.map((a) => axes.map((b) => spread(a, b))), outputs,
  }
}

/** Wilson's 95 % interval. */
function wilson(hits: number, draws: number): [number, number] {
  const z = 1.959963984540054
  const share = hits / draws
  const middle = (share + (z * z) / (2 * draws)) / (1 + (z * z) / draws)
  const half = (z / (1 + (z * z) / draws)) * Math.sqrt((share * (1 - share)) / draws + (z * z) / (4 * draws * draws))
  return [Math.max(0, middle - half), Math.min(1, middle + half)]
}

/** What noise does to some layers, side by side. */
export function noise(question: NoiseQuestion): { layers: LayerNoise[] } {
  const given: NoisyKeys = { ...question, scale: scaleOf(question.scale, question.keys[0].length) }
  return { layers: question.layers.map((queries) => layerNoise(given, queries, question.of, question.radius)) }
}

function layerNoise(given: NoisyKeys, queries: Rows, of: number[], radius: number): LayerNoise {
  const { values } = given
  const one = new OneNoisyKey(given, queries)
  const target: Point = of.length ? (mix(values.map((_, i) => (of.includes(i) ? 1 / of.length : 0)), values) as Point) : one.output(one.at(0))
  const exact = given.isotropic === 0
  const found = exact ? one.moments() : sampledMoments(given, queries)
  const squaredBias = (found.mean[0] - target[0]) ** 2 + (found.mean[1] - target[1]) ** 2
  const common = {
    weights_mean: found.weights, weights_std: found.deviations, mean: found.mean, covariance: found.covariance, target,
    error: squaredBias + found.covariance[0][0] + found.covariance[1][1], squared_bias: squaredBias,
  }
  if (exact) {
    const { value, low, high } = one.failure(target, radius)
    const logits = queries.map((query) => times(given.keys, query).map((logit) => given.scale * logit))
    return { ...common, method: 'exact', reason: null, draws: 0, failure: value, failure_low: low, failure_high: high, sampled_failure: value, limit_failure: one.limit(logits, target, radius) }
  }
  const { outputs } = found as Moments & { outputs: Float64Array }
  let hits = 0
  for (let draw = 0; draw < DRAWS; draw++) if (Math.hypot(outputs[2 * draw] - target[0], outputs[2 * draw + 1] - target[1]) > radius) hits++
  const [low, high] = wilson(hits, DRAWS)
  return {
    ...common, method: 'sampled', reason: 'noise in every direction', draws: DRAWS, failure: hits / DRAWS, failure_low: low, failure_high: high,
    sampled_failure: hits / DRAWS, limit_failure: null,
  }
}
