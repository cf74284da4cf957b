/**
 * Heads that withstand noise: queries that minimise E‖c − target‖² with ‖q_h‖ ≤ norm, as `design_heads` does.
 * The expectation is an average over fixed nodes of the noise; the search goes down from hand-made and random
 * starts, and every choice is then judged by one evaluation, exact where one key is noisy.
 */

import type { DesignAnswer } from '../lib/attention.svelte'
import { mix, normalNumbers, type Point } from '../lib/mathematics'
import { combined, norm, plus, scaled, zeros, type Rows, type Vector } from './linear'
import { drawn, OneNoisyKey, tail, type NoisyKeys } from './noise'
import { Generator } from './random'

const EVALUATION_DRAWS = 8000

interface Nodes {
  /** ξ of the noisy key at each node. */
  along: Float64Array
  /** η of every key, node by node; empty without noise in every direction. */
  around: Float64Array
}

function nodesOf(given: NoisyKeys, count: number): Nodes {
  const size = given.keys.length * given.keys[0].length
  const middle = (i: number): number => {
    // The midpoints of intervals of equal normal probability.
    const wanted = (i + 0.5) / count
    let [low, high] = [-9, 9]
    for (let round = 0; round < 60; round++) {
      const x = (low + high) / 2
      if (tail(-x) < wanted) low = x
      else high = x
    }
    return (low + high) / 2
  }
  if (given.isotropic === 0) return { along: Float64Array.from({ length: count }, (_, i) => middle(i)), around: new Float64Array(0) }
  return { along: normalNumbers(count, 23), around: normalNumbers(count * size, 29) }
}

/** The average of ‖c − t‖² over the nodes, and its gradient: see `HeadsObjective` in Python. */
function objective(given: NoisyKeys, target: Point, nodes: Nodes): (Q: Rows) => [number, Rows] {
  const { keys, values, scale } = given
  const [n, d] = [keys.length, keys[0].length]
  const errors = values.map(([x, y]) => [x - target[0], y - target[1]])
  const sigma = Math.sqrt(Math.max(0, given.isotropic))
  const along = Math.sqrt(Math.max(0, given.variance))
  const count = nodes.along.length
  const moved = new Float64Array(n * d)
  return (Q) => {
    const H = Q.length
    const gradient = Q.map(() => zeros(d))
    const alpha = Q.map(() => new Float64Array(n))
    let total = 0
    for (let node = 0; node < count; node++) {
      for (let i = 0; i < n; i++) {
        const stretch = i === given.noisy ? 1 + along * nodes.along[node] : 1
        for (let j = 0; j < d; j++) moved[i * d + j] = keys[i][j] * stretch + (sigma ? sigma * nodes.around[(node * n + i) * d + j] : 0)
      }
      let [x, y] = [0, 0]
      for (let h = 0; h < H; h++) {
        let peak = -Infinity
        for (let i = 0; i < n; i++) {
          let logit = 0
          for (let j = 0; j < d; j++) logit += moved[i * d + j] * Q[h][j]
          alpha[h][i] = scale * logit
          if (alpha[h][i] > peak) peak = alpha[h][i]
        }
        let sum = 0
        for (let i = 0; i < n; i++) sum += alpha[h][i] = Math.exp(alpha[h][i] - peak)
        for (let i = 0; i < n; i++) {
          alpha[h][i] /= sum
          x += (alpha[h][i] * errors[i][0]) / H
          y += (alpha[h][i] * errors[i][1]) / H
        }
      }
      total += x * x + y * y
      for (let h = 0; h < H; h++) {
        let mean = 0
        for (let i = 0; i < n; i++) mean += alpha[h][i] * (errors[i][0] * x + errors[i][1] * y)
        for (let i = 0; i < n; i++) {
          const slope = (alpha[h][i] * (errors[i][0] * x + errors[i][1] * y - mean) * 2 * scale) / (H * count)
          if (slope !== 0) for (let j = 0; j < d; j++) gradient[h][j] += slope * moved[i * d + j]
        }
      }
    }
    return [total / count, gradient]
  }
}

const within = (Q: Rows, most: number): Rows => Q.map((row) => (norm(row) > most ? scaled(row, most / norm(row)) : row))
const inner = (A: Rows, B: Rows): number => A.reduce((sum, row, h) => sum + row.reduce((more, entry, j) => more + entry * B[h][j], 0), 0)
const moved = (A: Rows, B: Rows, factor: number): Rows => A.map((row, h) => plus(row, B[h], factor))

/** Go down from one start, keeping every query within its length (spectral projected gradient). */
function descended(J: (Q: Rows) => [number, Rows], start: Rows, most: number, rounds: number): [number, Rows] {
  let Q = within(start, most)
  let [value, gradient] = J(Q)
  const recent = [value]
  let step = most / Math.max(1e-12, Math.sqrt(inner(gradient, gradient))) / 10
  let [bestValue, best] = [value, Q]
  for (let round = 0; round < rounds; round++) {
    const direction = moved(within(moved(Q, gradient, -step), most), Q, -1)
    const slope = inner(gradient, direction)
    if (slope > -1e-16) break
    let share = 1
    let next = Q
    let found: [number, Rows] = [value, gradient]
    for (let tries = 0; tries < 20; tries++, share /= 2) {
      next = moved(Q, direction, share)
      found = J(next)
      if (found[0] <= Math.max(...recent) + 1e-4 * share * slope) break
    }
    const change = moved(next, Q, -1)
    const bend = inner(change, moved(found[1], gradient, -1))
    step = bend > 0 ? Math.min(1e12, Math.max(1e-12, inner(change, change) / bend)) : 10 * step
    ;[Q, value, gradient] = [next, ...found]
    recent.push(value)
    if (recent.length > 8) recent.shift()
    if (value < bestValue) [bestValue, best] = [value, Q]
  }
  return [bestValue, best]
}

interface Choice {
  name: string
  queries: Rows
  error: number
  squared: number
  variance: number
  bias: number
  mass: number
}

export function designHeads(given: NoisyKeys, of: number[], heads: number, most: number): DesignAnswer {
  const { keys, values } = given
  const d = keys[0].length
  const weights = keys.map((_, i) => (of.includes(i) ? 1 / of.length : 0))
  const target = mix(weights, values)
  const exact = given.isotropic === 0
  const judged = (name: string, queries: Rows): Choice => {
    let [bias, variance, mass] = [0, 0, 0]
    if (exact) {
      const found = new OneNoisyKey(given, queries).moments()
      bias = (found.mean[0] - target[0]) ** 2 + (found.mean[1] - target[1]) ** 2
      variance = found.covariance[0][0] + found.covariance[1][1]
      mass = of.reduce((sum, i) => sum + found.weights[i], 0)
    } else {
      const found = drawn(given, queries, EVALUATION_DRAWS, 101)
      const mean = [0, 0]
      let squared = 0
      for (let draw = 0; draw < EVALUATION_DRAWS; draw++) {
        const [x, y] = [found.outputs[2 * draw] - target[0], found.outputs[2 * draw + 1] - target[1]]
        mean[0] += x / EVALUATION_DRAWS
        mean[1] += y / EVALUATION_DRAWS
        squared += (x * x + y * y) / EVALUATION_DRAWS
        for (const i of of) mass += found.weights[draw * keys.length + i] / EVALUATION_DRAWS
      }
      bias = mean[0] ** 2 + mean[1] ** 2
      variance = Math.max(0, squared - bias)
    }
    return { name, queries, error: Math.sqrt(bias + variance), squared: bias + variance, bias, variance, mass }
  }
  const hand = handMade(keys, weights, of, heads, most)
  const comparison = Object.entries(hand).map(([name, queries]) => judged(name, queries))
  const stream = new Generator(0)
  const starts: [string, Rows][] = [
    ...Object.entries(hand),
    ...Object.entries(hand).map(([name, queries]) => [`${name}, shorter`, queries.map((row) => scaled(row, 0.2))] as [string, Rows]),
    ...Array.from({ length: 4 }, (_, i) => [`random ${i}`, stream.normals(heads, d).map((row) => scaled(row, (most * (0.1 + 0.9 * stream.uniform())) / norm(row)))] as [string, Rows]),
  ]
  const room = Math.max(64, Math.min(512, Math.floor(400_000 / (keys.length * d))))
  const screen = objective(given, target, nodesOf(given, Math.min(256, room)))
  const nodes = exact ? 1024 : room
  const final = objective(given, target, nodesOf(given, nodes))
  const screened = starts.map(([name, Q]) => [name, ...descended(screen, Q, most, 40)] as const).sort((a, b) => a[1] - b[1])
  const optima = screened.slice(0, 3).map(([name, , Q]) => judged(name, descended(final, Q, most, 120)[1]))
  const best = optima.reduce((a, b) => (b.squared < a.squared ? b : a))
  const chosen = comparison.reduce((a, b) => (b.squared < a.squared ? b : a), best)
  const origin = chosen === best ? `a local optimum on ${nodes} nodes of the noise, the best of ${starts.length} starts` : `the given choice “${chosen.name}”, which no optimum found improves on`
  return {
    kind: 'robust',
    heads: {
      queries: chosen.queries, error: chosen.error, expected_squared_error: chosen.squared, variance: chosen.variance, squared_bias: chosen.bias, mass: chosen.mass,
      certificate: {
        method: exact ? 'exact' : 'sampled',
        statement: `${origin}; the error was evaluated ${exact ? 'by quadrature' : 'by independent draws'}, and every choice compared within the budget errs at least as much; better queries may exist`,
      },
      comparison: comparison.sort((a, b) => a.squared - b.squared).map(({ name, error }) => ({ name, error })),
    },
  }
}

/** What one would try first, at the full length. */
function handMade(keys: Rows, weights: Vector, of: number[], heads: number, most: number): Record<string, Rows> {
  const unit = (row: Vector): Vector => (norm(row) > 0 ? scaled(row, 1 / norm(row)) : row)
  const whole = combined(keys.map(() => 1), keys)
  // Equal shares: heads go round the wanted keys, in the order of the keys.
  const own = Array.from({ length: heads }, (_, h) => [...of].sort((a, b) => a - b)[h % of.length]).sort((a, b) => a - b).map((i) => keys[i])
  const first = Math.min(...of)
  const others = combined(weights.map((share) => (share === 0 ? -1 : 0)), keys)
  const same = (row: Vector): Rows => Array.from({ length: heads }, () => row)
  const directions: Record<string, Rows> = {
    'one head a target key': own,
    'one head a target key, away from all others': own.map((row) => plus(unit(row), unit(plus(whole, row, -1)), -1)),
    'all heads on the sum': same(combined(weights, keys)),
    [`all heads on key ${first}`]: same(keys[first]),
    'all heads away from the other keys': same(others),
  }
  const size = Math.max(...keys.flat().map(Math.abs))
  return Object.fromEntries(
    Object.entries(directions).filter(([, Q]) => Math.min(...Q.map(norm)) > 1e-9 * size).map(([name, Q]) => [name, Q.map((row) => scaled(row, most / norm(row)))]),
  )
}
