/** What an encoding gives each position, and what order does to a sentence: room `positions` in the browser. */

import { about } from '../lib/about'
import type { Unpacked } from '../lib/api'
import { softmax } from '../lib/mathematics'
import { dot, norm, plus, scaled, times, transposed, zeros, type Rows } from './linear'
import { crc32, Generator } from './random'
import { figures } from './words'

export interface StudyQuestion {
  kind: string
  length: number
  width: number
  base: number
}

export interface OrderQuestion {
  first: string
  second: string
  positions: boolean
  mask: boolean
}

const DISTANCES_SHOWN = 192
const HEADS = 8
const LAYOUTS = ['interleaved', 'half'] as const
/** Significant bits and the exponent of the smallest normal number. */
const FORMATS: [string, number, number][] = [['fp16', 11, -14], ['bf16', 8, -126]]
/** The share of each head's width that partial rotary positions turn, unless a model says otherwise. */
const PARTLY = 0.25

const frequencies = (width: number, base: number): number[] => Array.from({ length: width / 2 }, (_, i) => base ** ((-2 * i) / width))

function sinusoidal(length: number, width: number, base: number): Rows {
  const omega = frequencies(width, base)
  return Array.from({ length }, (_, t) => omega.flatMap((one) => [Math.sin(t * one), Math.cos(t * one)]))
}

function array(rows: Rows): Unpacked {
  const columns = rows[0]?.length ?? 0
  const data = new Float32Array(rows.length * columns)
  rows.forEach((row, i) => data.set(row, i * columns))
  return { shape: [rows.length, columns], data }
}

function distances(rows: Rows): Unpacked {
  const some = rows.slice(0, DISTANCES_SHOWN)
  return array(some.map((row) => some.map((other) => norm(plus(row, other, -1)))))
}

function wavelengths(width: number, base: number, length: number): { lengths: number[]; statement: string } {
  const lengths = frequencies(width, base).map((omega) => (2 * Math.PI) / omega)
  const [first, last] = [figures(lengths[0], 4), figures(lengths[lengths.length - 1], 4)]
  const order = base > 1 && width > 2
    ? `wavelengths grow with the dimension, from ${first} positions at dimensions 0 and 1 to ${last} at ${width - 2} and ${width - 1}: low dimensions are the high frequencies`
    : `wavelengths run from ${first} to ${last} positions`
  return { lengths, statement: `${order}; ${lengths.filter((one) => one > length).length} of ${width / 2} pairs do not complete a turn within ${length} positions` }
}

/** To nearest, ties to even. */
export function rounded(value: number, bits: number, lowest: number): number {
  if (value === 0) return 0
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(value))), lowest)
  const step = 2 ** (exponent - (bits - 1))
  const share = value / step
  const below = Math.floor(share)
  const apart = share - below
  return (apart > 0.5 || (apart === 0.5 && below % 2 !== 0) ? below + 1 : below) * step + 0
}

function collisions(names: string[], what: string, format: string): string {
  const seen = new Map<string, number>()
  let many = 0
  let first = ''
  names.forEach((name, t) => {
    const earlier = seen.get(name)
    if (earlier === undefined) seen.set(name, t)
    else {
      if (!many) first = `, first ${t} with ${earlier}`
      many++
    }
  })
  return `with ${what} rounded to ${format}, of ${names.length} positions ${many ? `${many} coincide with an earlier one${first}` : 'all stay different'}`
}

const positionCollisions = (length: number, format: (typeof FORMATS)[number]): string =>
  collisions(Array.from({ length }, (_, t) => String(rounded(t, format[1], format[2]))), 't itself', format[0])

function waves(question: StudyQuestion): object {
  const { length, width, base } = question
  const omega = frequencies(width, base)
  const table = sinusoidal(length, width, base)
  const gaps = Array.from({ length }, (_, k) => Math.sqrt(omega.reduce((sum, one) => sum + 4 * Math.sin((k * one) / 2) ** 2, 0)))
  let gap = 1
  for (let k = 1; k < length; k++) if (gaps[k] < gaps[gap]) gap = k
  let error = 0
  table.slice(0, -1).forEach((row, t) => omega.forEach((one, i) => {
    const [sine, cosine] = [row[2 * i], row[2 * i + 1]]
    error = Math.max(error, Math.abs(sine * Math.cos(one) + cosine * Math.sin(one) - table[t + 1][2 * i]), Math.abs(cosine * Math.cos(one) - sine * Math.sin(one) - table[t + 1][2 * i + 1]))
  }))
  const found = wavelengths(width, base, length)
  return {
    distinguishes: true, table: array(table), distances: distances(table), wavelengths: found, gap_distances: gaps, slopes: null,
    smallest_distance: { gap, distance: gaps[gap], proved: null, relative: gaps[gap] / Math.sqrt(width / 2) },
    statements: [
      found.statement,
      'no two whole positions share an embedding: proved for every length',
      `any two of ${length} positions are at least ${figures(gaps[gap], 6)} apart in ${width} dimensions (computed in float64; the laboratory proves it); positions ${gap} apart come that close`,
      `φ(t + 1) = M φ(t) with one M for all t: it turns pair i by 1·ω_i (sin(a+b) and cos(a+b) are linear in sin a, cos a); computed, ${length} positions agree within ${error.toExponential(1)}`,
      ...FORMATS.flatMap((format) => [
        collisions(table.map((row) => row.map((entry) => rounded(entry, format[1], format[2])).join(' ')), 'φ(t)', format[0]),
        positionCollisions(length, format),
      ]),
    ],
  }
}

/** Turn the pairs of a vector by their angles at a position. */
function turned(x: number[], at: number, omega: number[], layout: (typeof LAYOUTS)[number]): number[] {
  const result = [...x]
  omega.forEach((one, i) => {
    const [a, b] = layout === 'interleaved' ? [2 * i, 2 * i + 1] : [i, i + omega.length]
    const [cosine, sine] = [Math.cos(at * one), Math.sin(at * one)]
    result[a] = x[a] * cosine - x[b] * sine
    result[b] = x[a] * sine + x[b] * cosine
  })
  return result
}

function relativeScores(width: number, base: number, layout: (typeof LAYOUTS)[number]): string {
  const omega = frequencies(width, base)
  const stream = new Generator(0)
  const place = (): number => Math.floor(stream.uniform() * 2048)
  let [worst, spread] = [0, 0]
  for (let trial = 0; trial < 64; trial++) {
    const [q, k] = stream.normals(2, width)
    const [s, t, together] = [place(), place(), place()]
    const score = (at: number, other: number): number => dot(turned(q, at, omega, layout), turned(k, other, omega, layout)) / (norm(q) * norm(k))
    const plain = score(s, t)
    worst = Math.max(worst, Math.abs(score(s + together, t + together) - plain))
    spread = Math.max(spread, Math.abs(score(s + 1 + together, t) - plain))
  }
  return `rotary scores (${layout} pairs) moved together by up to 2047 positions change by at most ${worst.toExponential(1)} of |q||k| in 64 trials, while a changed difference moves them by up to ${figures(spread, 2)}`
}

function rotary(question: StudyQuestion, width: number): object {
  const { length, base } = question
  const found = wavelengths(width, base, length)
  return {
    distinguishes: true, wavelengths: found,
    statements: [found.statement, ...LAYOUTS.map((layout) => relativeScores(width, base, layout)), ...FORMATS.map((format) => positionCollisions(length, format))],
  }
}

function alibi({ length }: StudyQuestion): object {
  const slopes = Array.from({ length: HEADS }, (_, h) => 2 ** (-(8 * (h + 1)) / HEADS))
  const [steep, flat] = [slopes[0], slopes[HEADS - 1]]
  return {
    distinguishes: true, slopes,
    statements: [
      `${HEADS} heads lower a score by ${figures(steep, 4)} to ${figures(flat, 4)} for each position between query and key; only the distance counts`,
      `over ${length} positions the steepest head lowers a score by ${figures(steep * (length - 1), 4)}, the flattest by ${figures(flat * (length - 1), 4)}`,
      'distance alone does not tell left from right: a causal mask must',
    ],
  }
}

function learned({ length, width }: StudyQuestion): object {
  const rows = new Generator(0).normals(length, width).map((row) => scaled(row, 0.02))
  return {
    distinguishes: length > 1, table: array(rows), distances: distances(rows),
    statements: [
      `a random table, as before training has ${new Set(rows.map(String)).size} different rows for ${length} positions`,
      `position ${length} and beyond have no embedding: a table ends where training did`,
    ],
  }
}

function none({ length, width }: StudyQuestion): object {
  const rows = Array.from({ length }, () => zeros(width))
  return {
    distinguishes: false, table: array(rows), distances: distances(rows),
    statements: ['without positions every token gets the same zero: plain self-attention with a feed-forward layer then only permutes its outputs when its inputs are permuted'],
  }
}

/** Every encoding by its name; a test holds the list against the laboratory's. */
export const ENCODINGS: Record<string, (question: StudyQuestion) => object> = {
  sinusoidal: waves,
  learned,
  rotary: (question) => rotary(question, question.width),
  partial_rotary: (question) => rotary(question, Math.floor(Math.floor(question.width * PARTLY) / 2) * 2),
  alibi,
  none,
}

const NOTHING = { table: null, distances: null, wavelengths: null, gap_distances: null, smallest_distance: null, slopes: null }

export function study(question: StudyQuestion): object {
  const asked = { ...question, width: about.encodings.find(({ name }) => name === question.kind)?.has_base ? question.width - (question.width % 2) : question.width }
  return { kind: asked.kind, length: asked.length, width: asked.width, ...NOTHING, ...ENCODINGS[asked.kind](asked) }
}

const WORD_WIDTH = 16
const MOST_WORDS = 12

/** One head of self-attention with fixed random weights, the same as the laboratory's. */
class Layer {
  readonly W: Rows[]

  constructor(readonly positions: boolean, readonly mask: boolean) {
    const stream = new Generator(0)
    this.W = Array.from({ length: 3 }, () => transposed(stream.normals(WORD_WIDTH, WORD_WIDTH).map((row) => scaled(row, 1 / Math.sqrt(WORD_WIDTH)))))
  }

  read(X: Rows): { weights: Rows; output: Rows } {
    const waves = sinusoidal(X.length, WORD_WIDTH, 10_000)
    const seen = this.positions ? X.map((row, t) => plus(row, waves[t])) : X
    const [Q, K, V] = this.W.map((W) => seen.map((row) => times(W, row)))
    const weights = Q.map((q, t) => Array.from(softmax(Float64Array.from(K, (k, s) => (this.mask && s > t ? -Infinity : dot(q, k) / Math.sqrt(WORD_WIDTH))))))
    return { weights, output: weights.map((row) => row.reduce((sum, share, s) => plus(sum, V[s], share), zeros(WORD_WIDTH))) }
  }
}

const word = (text: string): number[] => {
  const stream = new Generator(0, crc32(text))
  return Array.from({ length: WORD_WIDTH }, () => stream.normal())
}

export function order(question: OrderQuestion): object {
  const sentences = [question.first, question.second].map((text) => text.trim().split(/\s+/).filter(Boolean))
  sentences.forEach((words, place) => {
    if (words.length < 1 || words.length > MOST_WORDS) throw new Error(`${place ? 'second' : 'first'}: has ${words.length} words; 1 to ${MOST_WORDS} words were expected`)
  })
  const layer = new Layer(question.positions, question.mask)
  const read = sentences.map((words) => layer.read(words.map(word)))
  const [first, second] = sentences
  const same = [...first].sort().join(' ') === [...second].sort().join(' ')
  const size = Math.max(...read[0].output.map(norm))
  const free = second.map((text, t) => ({ text, t }))
  const changes = !same ? [] : first.map((text, s) => {
    const [{ t }] = free.splice(free.findIndex((one) => one.text === text), 1)
    const change = norm(plus(read[0].output[s], read[1].output[t], -1))
    return { word: text, from: s, to: t, change, relative: change / size }
  })
  const mean = (rows: Rows): number[] => scaled(rows.reduce((sum, row) => plus(sum, row), zeros(WORD_WIDTH)), 1 / rows.length)
  return {
    sentences: sentences.map((words, place) => ({ words, weights: read[place].weights })),
    same_words: same,
    changes,
    mean_change: same ? norm(plus(mean(read[0].output), mean(read[1].output), -1)) : null,
    law: law(layer),
  }
}

const LAW = 'f(PX) = P f(X)'

/** Try whether the layer only permutes its outputs when its inputs are permuted. */
function law(layer: Layer): { holds: boolean; statement: string; law: string } {
  const stream = new Generator(1)
  let worst = 0
  for (let trial = 0; trial < 4; trial++) {
    const X = stream.normals(6, WORD_WIDTH)
    const P = [1, 0, 2, 3, 4, 5].map((_, i) => (i + 1 + trial) % 6)
    const plain = layer.read(X).output
    const moved = layer.read(P.map((i) => X[i])).output
    const size = Math.max(...plain.map(norm))
    P.forEach((i, place) => (worst = Math.max(worst, norm(plus(moved[place], plain[i], -1)) / size)))
  }
  return worst < 1e-9
    ? { holds: true, law: LAW, statement: `${LAW} held in 4 trials of shape (6, ${WORD_WIDTH}) with a largest relative error of ${worst.toExponential(1)}: strong evidence, not a proof` }
    : { holds: false, law: LAW, statement: `${LAW} fails: with six random words in another order, an output moves by ${figures(worst, 3)} of the largest` }
}
