/** Further questions to a model: translations, questions about people, and what its heads do. */

import { wholeOf } from './address.svelte'
import { latest } from './api'

export interface Hypothesis {
  text: string
  log_probability: number
  per_token: number
  score: number
  /** log p of the source after this text, per token; null where no model for the way back ranks. */
  reverse?: number | null
  tokens: number[]
  finished: boolean
}

export interface Alignment {
  source_words: string[]
  target_words: string[]
  weights: number[][]
  mass: number[]
  links: number[]
  heads: { layer: number; head: number; name: string; mass: number; information: number }[]
  method: string
}

/** What each method of attribution looks at. */
export const METHODS: Record<string, string> = {
  attention: 'what the heads that align read',
  'value norm': 'the same, times the norm of what each value adds',
  gradient: 'gradient of log p times embedding',
  integrated: 'gradients integrated from mean embeddings',
  erasure: 'how far log p of the word falls when a source word is taken out',
}

interface TranslateAnswer {
  languages: [string, string]
  rank: number
  /** The text in translation, as `heed translate` gives it, and what may be wrong with it. */
  whole: { text: string; notes: string[] }
  /** What the search found for the text as one sentence. */
  translation: { source: string; text: string; hypotheses: Hypothesis[] }
  alignment: Alignment | null
  /** The tokens of each translation as people read them. */
  pieces: string[][]
  methods: string[]
  best_method: string
}

export const BEAMS = [1, 2, 3, 5, 8, 12, 16]

type Values = Record<string, string>

/** A question that takes a while: what was found, whether it is being worked on, what went wrong. */
export class Inquiry<Answer> {
  found = $state.raw<Answer | null>(null)
  busy = $state(false)
  trouble = $state('')
  #asks: ReturnType<typeof latest<object, Answer>>

  constructor(path: string, delay: number) {
    this.#asks = latest<object, Answer>(path, delay, (found) => this.#end(found, ''), (problem) => this.#end(null, problem))
  }

  send(question: object): void {
    this.busy = true
    this.#asks.ask(question)
  }

  forget(): void {
    this.close()
    this.#end(null, '')
  }

  close(): void {
    this.#asks.stop()
  }

  #end(found: Answer | null, trouble: string): void {
    this.found = found
    this.busy = false
    this.trouble = trouble
  }
}

/** The translations of a sentence, and the alignment of one of them. */
export class Translating extends Inquiry<TranslateAnswer> {
  beam = $state(5)
  rank = $state(0)
  /** How words are traced to the source; empty: by the best method known. */
  method = $state('')

  constructor(values: Values) {
    super('models/translate', 400)
    this.method = values.method && values.method in METHODS ? values.method : ''
    const wanted = wholeOf(values.beam, 5, 1, 16)
    this.beam = BEAMS.includes(wanted) ? wanted : 5
    this.rank = wholeOf(values.rank, 0, 0, 15)
  }

  get values(): Values {
    const rank = this.found?.rank ?? this.rank // there may be fewer than were asked for
    return { ...(this.beam === 5 ? {} : { beam: String(this.beam) }), ...(rank ? { rank: String(rank) } : {}), ...(this.method ? { method: this.method } : {}) }
  }

  /** The tokens of the chosen translation of a text, once they are known. */
  targetOf(text: string): number[] {
    return this.found?.translation.source === text ? (this.found.translation.hypotheses[this.found.rank]?.tokens ?? []) : []
  }

  ask(model: string, text: string): void {
    this.send({ model, text, beam: this.beam, rank: Math.min(this.rank, this.beam - 1), method: this.method })
  }
}

export interface Neighbour {
  name: string
  place: string
  score: number
}

export interface Reply {
  question: string
  name: string | null
  answer: string | null
  would_say: string
  confidence: number
  threshold: number
  wanted_error: number
  evidence: string | null
  supported: boolean
  fine_tuned_answer: string | null
  nearest: Record<string, Neighbour>
}

/** Who can be asked: a knowledge study, or a model that others have trained. */
export interface Asker {
  id: string
  name: string
  kind: 'study' | 'model'
  called: string
}

/** A question, and what a model of the knowledge study replies. */
export class Asking extends Inquiry<{ reply: Reply }> {
  asker = $state('')
  question = $state('')

  constructor(values: Values) {
    super('models/ask', 500)
    this.asker = values.asker ?? ''
    this.question = values.question ?? ''
  }

  get values(): Values {
    return this.question ? { asker: this.asker, question: this.question } : {}
  }

  ask(): void {
    if (!this.asker || !this.question.trim()) this.forget()
    else this.send({ asker: this.asker, text: this.question })
  }
}

/** What an answer of a model of others is called, and what that means; the words are those of `findings.py`. */
export const ANSWER_LABELS: Record<string, string> = {
  known: 'above the threshold of the promise below',
  unsure: 'above the lower threshold only: as likely wrong as the second promise allows',
  "I don't know": 'below every threshold, so that it is not given as an answer',
  'not calibrated': 'nobody has found out what this model’s confidence is worth',
}

export interface ModelReply {
  question: string
  answer: string | null
  would_say: string
  label: string
  confidence: number | null
  probability: number
  agreement: number
  wordings: string[]
  others: string[]
}

export interface Promises {
  known: string
  known_from: number | null
  unsure: string
  unsure_from: number | null
  population: string
}

interface Told {
  done?: number
  of?: number
  error?: { where: string; problem: string; expected?: string; hint?: string }
  reply?: ModelReply
  model?: string
  promises?: Promises | null
  calibrate?: string
}

const MOST_ANSWERS = 20

/** Questions to a model of others: one at a time, each with how far it is; whoever leaves stops it. */
export class Interview {
  /** Newest first. */
  answers = $state.raw<ModelReply[]>([])
  promises = $state.raw<Promises | null>(null)
  calibrate = $state('')
  busy = $state(false)
  trouble = $state('')
  done = $state(0)
  of = $state(0)
  /** Whose answers these are. */
  model = ''
  #socket: WebSocket | null = null

  ask(model: string, text: string): void {
    this.stop()
    if (model !== this.model) this.answers = []
    this.model = model
    this.trouble = ''
    this.busy = true
    this.done = this.of = 0
    const mine = (this.#socket = new WebSocket(`ws://${location.host}/api/models/questions`))
    mine.onopen = () => mine.send(JSON.stringify({ model, text }))
    mine.onmessage = (event) => mine === this.#socket && this.#hear(JSON.parse(event.data))
    mine.onclose = () => {
      if (mine !== this.#socket) return
      if (this.busy) this.trouble = 'The server does not answer. Is `heed serve` still running?'
      this.busy = false
    }
  }

  /** Ask no longer: the server gives up what it is doing. */
  stop(): void {
    const socket = this.#socket
    this.#socket = null
    socket?.close()
    this.busy = false
  }

  forget(): void {
    this.stop()
    this.answers = []
    this.trouble = ''
    this.model = ''
  }

  #hear(told: Told): void {
    if (told.of !== undefined) {
      this.done = told.done ?? 0
      this.of = told.of
      return
    }
    this.busy = false
    if (told.error) this.trouble = [told.error.problem, told.error.expected, told.error.hint].filter(Boolean).join('; ')
    if (!told.reply) return
    this.promises = told.promises ?? null
    this.calibrate = told.calibrate ?? ''
    const others = this.answers.filter((one) => one.question !== told.reply!.question)
    this.answers = [told.reply, ...others].slice(0, MOST_ANSWERS)
  }
}

interface Estimate {
  value: number
  low: number | null
  high: number | null
  count: number
}

export interface Head {
  layer: number
  head: number
  name: string
  kinds: Record<string, number>
  kind: string
  top_mass: Estimate
  effective_keys: Estimate
  masses: Record<string, Estimate>
  follows: Estimate | null
  looks_for: string
}

interface BehaviourAnswer {
  on: 'sentence' | 'sample'
  sample: string
  tokens: number
  behaviour: { heads: Head[]; counts: Record<string, number>; thresholds: Record<string, number>; repeated: number }
}

/** What heads are called, in the order in which they are shown. */
/** What a head with each label does, in the words of `studies/heads/behaviour.py`. */
export const LABELS: Record<string, string> = {
  previous: 'previous token',
  self: 'itself',
  first: 'first token',
  duplicate: 'same token before',
  induction: 'induction',
  source: 'follows the source',
  copies: 'copies, elsewhere',
  averages: 'averages few',
  diffuse: 'diffuse',
}

export const labelOf = (head: Head): string => head.looks_for || head.kind

/** How much of its reading supports the label of a head. */
export const strengthOf = (head: Head): number => (head.looks_for ? head.masses[head.looks_for].value : head.kinds[head.kind])

/** What each head does, on a sentence or on a sample. */
export class Watching extends Inquiry<BehaviourAnswer> {
  on = $state<'' | 'sentence' | 'sample'>('')
  does = $state('')

  constructor(values: Values) {
    super('models/behaviour', 450)
    this.on = values.on === 'sentence' || values.on === 'sample' ? values.on : ''
    this.does = values.does && values.does in LABELS ? values.does : ''
  }

  get values(): Values {
    return { ...(this.on ? { on: this.on } : {}), ...(this.does ? { does: this.does } : {}) }
  }

  sorted = $derived.by(() => {
    const order = Object.keys(LABELS)
    const place = (head: Head): number => order.indexOf(labelOf(head))
    return [...(this.found?.behaviour.heads ?? [])].sort((a, b) => place(a) - place(b) || strengthOf(b) - strengthOf(a))
  })
  shown = $derived(this.sorted.filter((head) => !(this.does && this.found && this.does in this.found.behaviour.counts) || labelOf(head) === this.does))

  ask(model: string, text: string, target: number[]): void {
    if (!this.on || !model || (this.on === 'sentence' && !text.trim())) this.forget()
    else this.send(this.on === 'sample' ? { model, on: 'sample' } : { model, on: 'sentence', text, target })
  }
}
