/**
 * The translator of the package in the browser: the same tokens as `heed translate` gives for one sentence.
 *
 * A pair is written `begin source between target end`. The decoder runs in onnxruntime with a cache of keys and
 * values; the search, its scores and its end are those of `heedful/generation/decoding.py`.
 */

import { Tokenizer } from '@huggingface/tokenizers'
import type * as Ort from 'onnxruntime-web'
import type { Alignment, Hypothesis } from '../lib/studies.svelte'
import { load, script } from './data'

export interface TranslatorData {
  name: string
  languages: [string, string]
  normalise: 'nfc' | 'keyboard' | 'none'
  /** Whether a word has the same tokens wherever in a text it stands: see tokenization/same_tokens.py. */
  same_tokens: boolean
  begin: number | null
  between: number
  end: number
  context: number
  layers: number
  heads: number
  kv_heads: number
  head_width: number
  vocabulary: number
  parameters: number
  beams: number
  examples: string[]
  /** Bytes of each file that is fetched. */
  files: Record<string, number>
}

/** What every head read while a pair was read: layers · heads squares, rows are queries. */
export interface Reading {
  tokens: string[]
  size: number
  weights: Float32Array
}

interface Step {
  logits: Float32Array
  past: Float32Array
  /** Tokens in the cache. */
  length: number
  rows: number
}

interface Link {
  token: number
  total: number
  beam: number
  before: Link | null
}

/** White space as Python's `strip` knows it. */
const ENDS = /^[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+|[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+$/g
const LONGEST_LINE = 20_000
const MOST_HEADS = 4
const NEAR = 0.5
const LETTER = '[\\p{L}\\p{N}_]'
const ELIDING = ['fr', 'fra', 'it', 'ita']

const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' ')

async function fetched(path: string, arrived: (bytes: number) => void): Promise<ArrayBuffer> {
  const response = await fetch(path)
  if (!response.ok || !response.body) throw new Error(`${path} of this site could not be loaded (${response.status}).`)
  const parts: Uint8Array[] = []
  const reader = response.body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    parts.push(value)
    arrived(value.length)
  }
  return new Blob(parts as BlobPart[]).arrayBuffer()
}

export class Translator {
  private constructor(readonly data: TranslatorData, private ort: typeof Ort, private session: Ort.InferenceSession, private tokenizer: Tokenizer) {}

  /** Fetch and open everything; `progress` is told the share that has arrived. */
  static async open(progress: (share: number) => void): Promise<Translator> {
    const data = await load<TranslatorData>('translator')
    const total = Object.values(data.files).reduce((sum, size) => sum + size, 0)
    let bytes = 0
    const get = (path: string): Promise<ArrayBuffer> => fetched(path, (more) => progress(Math.min(1, (bytes += more) / total)))
    const [binary, model, vocabulary] = await Promise.all([get('./ort/ort.wasm'), get('./translator/model.onnx'), get('./translator/tokenizer.json'), script('./ort/ort.js')])
    const ort = (globalThis as unknown as { ort: typeof Ort }).ort
    ort.env.wasm.numThreads = 1 // more need headers that a plain file server does not send
    ort.env.wasm.wasmBinary = binary
    ort.env.wasm.wasmPaths = { mjs: new URL('./ort/ort-loader.js', document.baseURI).href }
    const session = await ort.InferenceSession.create(new Uint8Array(model), { executionProviders: ['wasm'], graphOptimizationLevel: 'all' })
    const tokenizer = new Tokenizer(JSON.parse(new TextDecoder().decode(vocabulary)), { clean_up_tokenization_spaces: false })
    return new Translator(data, ort, session, tokenizer)
  }

  /** A source as the model was taught to read it. */
  written(text: string): string {
    let line = text.replace(/[\r\n]+/g, ' ')
    if (this.data.normalise !== 'none') line = line.normalize('NFC')
    if (this.data.normalise === 'keyboard') line = line.replaceAll('’', "'").replaceAll(/[\u00a0\u202f]/g, ' ').replace(/ +(?=[?!:;])/g, ' ')
    return line.replace(ENDS, '')
  }

  /** What the tokenizer is given of a source: with the same tokens, as it would stand inside of another text. */
  private readAs(text: string): string {
    const line = this.written(text)
    if (!this.data.same_tokens || !line) return line
    const apart = ELIDING.includes(this.data.languages[0]) ? line.replace(new RegExp(`(?<=${LETTER})(['’])(?=${LETTER})`, 'gu'), '$1 ') : line
    const word = /^\p{L}+/u.exec(apart)?.[0] ?? ''
    return ` ${word && isCapital(first(word)) && !this.keepsCapital(word) ? small(apart) : apart}`
  }

  /** Whether the form with a capital is the usual one inside of a text: it has fewer tokens, or earlier ones. */
  private keepsCapital(word: string): boolean {
    if (isCapital([...word][1] ?? '')) return true
    const [large, little] = [word, small(word)].map((one) => this.encode(` ${one}`))
    if (large.length !== little.length) return large.length < little.length
    const place = large.findIndex((token, i) => token !== little[i])
    return place >= 0 && large[place] < little[place]
  }

  /** A translation, as its tokens spell it, as people read it beside its source. */
  private shownAs(text: string, source: string): string {
    const line = oneLine(text).replace(ENDS, '')
    if (!this.data.same_tokens || isSmall(first(source.replace(ENDS, '')))) return line
    const large = first(line).toUpperCase()
    return [...large].length === 1 ? large + line.slice(first(line).length) : line
  }

  encode(text: string): number[] {
    return Array.from(this.tokenizer.encode(text, { add_special_tokens: false }).ids)
  }

  decode(tokens: number[], special = false): string {
    return this.tokenizer.decode(tokens, { skip_special_tokens: !special, clean_up_tokenization_spaces: false })
  }

  /** The tokens that ask for a translation. */
  prompt(text: string): number[] {
    if ([...text].length > LONGEST_LINE) throw new Error(`The text is longer than ${LONGEST_LINE.toLocaleString('en')} characters.`)
    const control = /(?![\t\r\n])\p{Cc}/u.exec(text)
    if (control) throw new Error(`The text holds a control character (U+${control[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}).`)
    const { begin, between, end, context } = this.data
    const source = this.encode(this.readAs(text))
    const row = [...(begin === null ? [] : [begin]), ...source, between]
    if (source.some((token) => token === begin || token === between || token === end)) throw new Error('The text holds a mark of the tokenizer.')
    if (row.length > context) throw new Error(`The text has ${row.length} tokens with its marks; the context of the model is ${context}.`)
    return row
  }

  private async run(tokens: number[][], past: Float32Array, length: number, weights = false): Promise<Step & { weights: Float32Array | null }> {
    const { layers, kv_heads, head_width } = this.data
    const [rows, time] = [tokens.length, tokens[0].length]
    const feeds = {
      tokens: new this.ort.Tensor('int64', BigInt64Array.from(tokens.flat(), BigInt), [rows, time]),
      past: new this.ort.Tensor('float32', past, [rows, 2 * layers * kv_heads, length, head_width]),
    }
    const found = await this.session.run(feeds, weights ? ['logits', 'present', 'weights'] : ['logits', 'present'])
    return {
      logits: found.logits.data as Float32Array, past: found.present.data as Float32Array, length: length + time, rows,
      weights: weights ? (found.weights.data as Float32Array) : null,
    }
  }

  /** log p of every token after one place of what was read. */
  private logProbabilities(logits: Float32Array, place: number): Float64Array {
    const size = this.data.vocabulary
    const row = logits.subarray(place * size, (place + 1) * size)
    let peak = -Infinity
    for (const one of row) if (one > peak) peak = one
    let sum = 0
    for (const one of row) sum += Math.exp(one - peak)
    const log = peak + Math.log(sum)
    return Float64Array.from(row, (one) => one - log)
  }

  /** The same with what opens a source and a translation made impossible: neither belongs into a translation. */
  private withoutMarks(row: Float64Array): Float64Array {
    for (const mark of [this.data.begin, this.data.between]) if (mark !== null) row[mark] = -Infinity
    return row
  }

  /** The best translations of one sentence, best first; one beam takes the likeliest token each time. */
  async translate(text: string, beams: number): Promise<Hypothesis[]> {
    const prompt = this.prompt(text)
    if (!this.written(text)) return []
    const limit = Math.min(this.data.context - prompt.length + 1, 2 * prompt.length + 24)
    const search = new Search(beams, limit, this.data.end, this.data.vocabulary)
    let step: Step = await this.run([prompt], new Float32Array(0), 0)
    let places = [prompt.length - 1]
    for (;;) {
      search.advance(places.map((place) => this.withoutMarks(this.logProbabilities(step.logits, place))))
      if (!search.open) break
      // Each row that goes on takes the cache of the one it extends.
      const size = step.past.length / step.rows
      const past = new Float32Array(search.running.length * size)
      search.running.forEach((link, row) => past.set(step.past.subarray(link.beam * size, (link.beam + 1) * size), row * size))
      step = await this.run(search.running.map((link) => [link.token]), past, step.length)
      places = search.running.map((_, row) => row)
    }
    const found = new Map<string, Hypothesis>() // of those that read alike the first
    for (const { tokens, total, score, finished } of search.ended) {
      const shown = this.shownAs(this.decode(finished ? tokens.slice(0, -1) : tokens), text)
      if (!found.has(shown)) found.set(shown, { text: shown, log_probability: total, per_token: total / tokens.length, score, tokens, finished })
    }
    return [...found.values()]
  }

  /** A token as people read it. */
  shown(token: number): string {
    const text = this.decode([token], true)
    return text && !text.includes('\ufffd') ? text : (this.tokenizer.id_to_token(token) ?? '')
  }

  /** What every head read while source and translation were read. */
  async read(text: string, target: number[]): Promise<Reading> {
    const prompt = this.prompt(text)
    const row = [...prompt, ...target].slice(0, Math.max(this.data.context, prompt.length))
    const { weights } = await this.run([row], new Float32Array(0), 0, true)
    return { tokens: row.map((token) => this.shown(token)), size: row.length, weights: weights! }
  }

  /** Which source words each word of a translation comes from, by what erasing a word does or by the heads that align. */
  async align(text: string, hypothesis: Hypothesis, method: 'erasure' | 'attention'): Promise<Alignment> {
    const target = hypothesis.finished ? hypothesis.tokens.slice(0, -1) : hypothesis.tokens
    const prompt = this.prompt(text)
    const opening = this.data.begin === null ? 0 : 1
    const source = prompt.slice(opening, -1)
    const [from, to] = this.data.languages
    const [read, spelt] = [this.readAs(text), oneLine(this.decode(target))]
    const [written, shown] = [this.written(text), this.data.same_tokens ? this.shownAs(spelt, text) : spelt]
    const sources = wordsOf(written, from, placed(this.spans(source), read, written))
    const targets = wordsOf(shown, to, placed(this.spans(target), spelt, shown))
    if (!sources.words.length || !targets.words.length) return { source_words: sources.words, target_words: targets.words, weights: [], mass: [], links: [], heads: [], method }
    let heads: Alignment['heads'] = []
    let scores: number[][]
    if (method === 'erasure') scores = await this.erased(prompt, opening, target, sources.owners)
    else ({ scores, heads } = await this.aligningHeads(prompt, opening, target))
    const rows = targets.words.map(() => sources.words.map(() => 0))
    const counts = targets.words.map((_, word) => targets.owners.filter((owner) => owner === word).length)
    scores.forEach((row, t) => row.forEach((score, s) => (rows[targets.owners[t]][sources.owners[s]] += score / Math.max(1, counts[targets.owners[t]]))))
    const mass = rows.map((row) => row.reduce((sum, score) => sum + score, 0))
    const weights = rows.map((row, t) => row.map((score) => (mass[t] > 0 ? score / mass[t] : 1 / row.length)))
    return { source_words: sources.words, target_words: targets.words, weights, mass, links: weights.map((row) => row.indexOf(Math.max(...row))), heads, method }
  }

  /** How far log p of each target token falls when a source word is taken out; its tokens share it. */
  private async erased(prompt: number[], opening: number, target: number[], owners: number[]): Promise<number[][]> {
    const forced = async (gone: number | null): Promise<number[]> => {
      const kept = prompt.slice(opening, -1).filter((_, place) => owners[place] !== gone)
      const start = [...prompt.slice(0, opening), ...kept, prompt[prompt.length - 1]]
      const { logits } = await this.run([[...start, ...target.slice(0, -1)]], new Float32Array(0), 0)
      return target.map((token, t) => this.logProbabilities(logits, start.length - 1 + t)[token])
    }
    const whole = await forced(null)
    const fallen = new Map<number, number[]>()
    for (const word of new Set(owners)) fallen.set(word, (await forced(word)).map((without, t) => Math.max(0, whole[t] - without)))
    const counts = owners.map((word) => owners.filter((one) => one === word).length)
    return target.map((_, t) => owners.map((word, s) => fallen.get(word)![t] / counts[s]))
  }

  /** The mean of the heads that read different source words for different outputs: see studies/translation/attribution.py. */
  private async aligningHeads(prompt: number[], opening: number, target: number[]): Promise<{ scores: number[][]; heads: Alignment['heads'] }> {
    const row = [...prompt, ...target.slice(0, -1)]
    const { weights } = await this.run([row], new Float32Array(0), 0, true)
    const [size, sources] = [row.length, prompt.length - 1 - opening]
    const all = Array.from({ length: this.data.layers * this.data.heads }, (_, head) => {
      const rows = target.map((_, t) => Array.from({ length: sources }, (_, s) => weights![(head * size + prompt.length - 1 + t) * size + opening + s]))
      const mass = rows.map((one) => one.reduce((sum, share) => sum + share, 0))
      const shares = rows.map((one, t) => one.map((share) => share / Math.max(mass[t], Number.MIN_VALUE)))
      const mean = Array.from({ length: sources }, (_, s) => shares.reduce((sum, one) => sum + one[s], 0) / shares.length)
      const bits = (one: number[]): number => -one.reduce((sum, share) => sum + (share > 0 ? share * Math.log2(share) : 0), 0)
      const information = Math.max(0, bits(mean) - shares.reduce((sum, one) => sum + bits(one), 0) / shares.length)
      return { head, rows, mass: mass.reduce((sum, one) => sum + one, 0) / mass.length, information }
    })
    const ranked = [...all].sort((a, b) => b.mass * b.information - a.mass * a.information).slice(0, MOST_HEADS)
    const chosen = ranked.filter((one) => one.mass * one.information >= NEAR * ranked[0].mass * ranked[0].information)
    return {
      scores: target.map((_, t) => Array.from({ length: sources }, (_, s) => chosen.reduce((sum, one) => sum + one.rows[t][s], 0) / chosen.length)),
      heads: chosen.map(({ head, mass, information }) => {
        const [layer, place] = [Math.floor(head / this.data.heads), head % this.data.heads]
        return { layer, head: place, name: headName(layer, place), mass, information }
      }),
    }
  }

  /** Where each token ends in the text of all: half a character counts once its other half has come. */
  private spans(tokens: number[]): [number, number][] {
    let before = 0
    return tokens.map((_, place) => {
      const end = Math.max(before, this.decode(tokens.slice(0, place + 1)).length)
      const span: [number, number] = [before, end]
      before = end
      return span
    })
  }
}

export const headName = (layer: number, head: number): string => `${layer}.${head}`

const first = (text: string): string => [...text.slice(0, 2)][0] ?? ''
const isCapital = (letter: string): boolean => /^\p{Lu}/u.test(letter)
const isSmall = (letter: string): boolean => /^\p{Ll}/u.test(letter)

/** The text with a small first letter, where its capital can be found again. */
function small(text: string): string {
  const letter = first(text).toLowerCase()
  return letter.toUpperCase() === first(text) ? letter + text.slice(first(text).length) : text
}

/** Where spans of a text that was read lie in the original, which has fewer spaces. */
function placed(spans: [number, number][], read: string, written: string): [number, number][] {
  const places = [0]
  for (const letter of read) for (let unit = 0; unit < letter.length; unit++) {
    const at = places[places.length - 1]
    places.push(at + Number(letter !== ' ' || written[at] === ' '))
  }
  const last = places.length - 1
  return spans.map(([start, end]) => [places[Math.min(start, last)], places[Math.min(end, last)]])
}

interface TextWords {
  words: string[]
  /** The word that each token belongs to. */
  owners: number[]
}

function wordsOf(text: string, language: string, spans: [number, number][]): TextWords {
  const pattern = ELIDING.includes(language) ? `${LETTER}+(?:-${LETTER}+)*['’]?|[^\\p{L}\\p{N}_\\s]` : `${LETTER}+(?:['’-]${LETTER}+)*|[^\\p{L}\\p{N}_\\s]`
  const found = [...text.matchAll(new RegExp(pattern, 'gu'))]
  const ends = found.map((word) => word.index + word[0].length)
  const last = Math.max(found.length - 1, 0)
  return { words: found.map(([word]) => word), owners: spans.map(([start]) => { const place = ends.findIndex((end) => end > start); return place < 0 ? last : place }) }
}

interface Ended {
  tokens: number[]
  total: number
  score: number
  finished: boolean
}

/** Beam search over one prompt, by the rules of `transformers`; with one beam, the likeliest token each time. */
class Search {
  running: Link[] = []
  ended: Ended[] = []
  open = true
  #length = 0

  constructor(readonly beams: number, readonly limit: number, readonly end: number, readonly vocabulary: number) {}

  advance(logProbabilities: Float64Array[]): void {
    this.#length += 1
    const last = this.#length === this.limit
    const best = this.#best(logProbabilities, this.beams === 1 ? 1 : 2 * this.beams)
    const running: Link[] = []
    best.forEach((link, rank) => {
      if (!last && link.token !== this.end) running.push(link)
      else if (rank < this.beams) this.ended.push(this.#aside(link))
    })
    this.ended = this.ended.map((one, place) => ({ one, place })).sort((a, b) => b.one.score - a.one.score || a.place - b.place).map(({ one }) => one).slice(0, this.beams)
    this.running = running.slice(0, this.beams)
    this.open = this.running.length > 0 && !(this.ended.length === this.beams && this.running[0].total / this.#length <= this.ended[this.beams - 1].score)
  }

  #best(rows: Float64Array[], count: number): Link[] {
    const best: Link[] = []
    rows.forEach((row, beam) => {
      const before = this.running[beam] ?? null
      const start = before?.total ?? 0
      for (let token = 0; token < row.length; token++) {
        const total = start + row[token]
        if (best.length === count && total <= best[count - 1].total) continue
        let place = best.length
        while (place > 0 && best[place - 1].total < total) place--
        best.splice(place, 0, { token, total, beam, before })
        if (best.length > count) best.pop()
      }
    })
    return best
  }

  #aside(link: Link): Ended {
    const tokens: number[] = []
    for (let step: Link | null = link; step; step = step.before) tokens.unshift(step.token)
    // Greedy ranks nothing: its score is the log-probability.
    const score = this.beams === 1 ? link.total : link.total / this.#length
    return { tokens, total: link.total, score, finished: link.token === this.end }
  }
}
