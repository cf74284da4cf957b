/** The state of view 4: runs as they train, and what a model does with a sentence. */

import { untrack } from 'svelte'
import { address, remember, wholeOf } from './address.svelte'
import { ask, channel, latest, unpacked, type Packed } from './api'
import { Inside } from './inside.svelte'
import { Asking, type Asker, Inquiry, Interview, LABELS, labelOf, Translating, Watching } from './studies.svelte'

export interface Run {
  id: string
  /** As people read it, without the hash of its folder. */
  name: string
  /** The study it belongs to; empty for none. */
  study: string
  folder: string
  state: string
  step: number
  steps: number
  loss: number | null
  evaluation: Record<string, number>
  parameters: number
  tokens_per_second: number | null
}

export interface Model {
  id: string
  name: string
  run: string | null
  translates: boolean
}

interface Difference {
  name: string
  first: unknown
  second: unknown
}

export interface Comparison {
  config: Difference[]
  machine: Difference[]
  results: Difference[]
  same_weights: boolean | null
}

export interface Line {
  step: number
  loss?: number
  evaluation?: Record<string, number>
  [name: string]: unknown
}

interface ReadAnswer {
  tokens: string[]
  layers: number
  heads: number
  layer: number
  weights: Packed
  next: { id: number; token: string; probability: number }[]
}

export class ModelsState {
  runs = $state.raw<Run[]>([])
  folder = $state('')
  models = $state.raw<Model[]>([])
  askers = $state.raw<Asker[]>([])
  run = $state('')
  /** A second run, beside the first. */
  other = $state('')
  otherLines = $state.raw<Line[]>([])
  comparison = new Inquiry<Comparison>('models/compare', 60)
  model = $state('')
  text = $state('')
  layer = $state(0)
  head = $state(0)
  lines = $state.raw<Line[]>([])
  read = $state.raw<ReadAnswer | null>(null)
  exact = $state.raw<{ shape: number[]; data: ArrayLike<number> } | null>(null)
  reading = $state(false)
  loaded = $state(false)
  trouble = $state('')
  /** What is wrong with the sentence, said beside it. */
  readTrouble = $state('')
  translating = new Translating(address.values)
  asking = new Asking(address.values)
  interview = new Interview()
  watching = new Watching(address.values)
  inside = new Inside(address.values)

  #timer: ReturnType<typeof setInterval> | undefined
  /** Whether the question came with the address, and was not put yet. */
  #shared = Boolean(address.values.question)
  /** The model of which `read` is. */
  #reader = ''
  #reads = latest<object, ReadAnswer>('models/read', 350, (found) => {
    this.read = found
    this.reading = false
    this.readTrouble = ''
    this.head = Math.min(this.head, found.heads - 1)
  }, (problem) => {
    this.readTrouble = problem
    this.reading = false
  })
  #exacts = latest<object, { weights: Packed }>('models/head', 60, (found) => (this.exact = unpacked(found.weights)), (problem) => (this.readTrouble = problem))

  constructor() {
    const values = address.values
    this.run = values.run ?? ''
    this.other = values.other ?? ''
    this.model = values.model ?? ''
    this.text = values.text ?? ''
    this.layer = wholeOf(values.layer, 0, 0, 999)
    this.head = wholeOf(values.head, 0, 0, 9999)
    void this.refresh()
    this.#timer = setInterval(() => void this.refresh(), 5000)
  }

  steps = $derived(this.lines.map((line) => line.step))
  losses = $derived(lossesOf(this.lines))
  otherSteps = $derived(this.otherLines.map((line) => line.step))
  otherLosses = $derived(lossesOf(this.otherLines))
  evaluations = $derived.by(() => {
    const found: Record<string, (number | null)[]> = {}
    this.lines.forEach((line, i) => {
      for (const [measure, value] of Object.entries(line.evaluation ?? {})) {
        const name = `${measure}, held out`
        found[name] ??= new Array(this.lines.length).fill(null)
        found[name][i] = value
      }
    })
    return found
  })
  asker = $derived(this.askers.find((one) => one.id === this.asking.asker) ?? null)
  translates = $derived(this.models.find((model) => model.id === this.model)?.translates ?? false)
  target = $derived(this.translates ? this.translating.targetOf(this.text) : [])
  weights = $derived(this.read ? unpacked(this.read.weights) : null)
  /** What heads were called when they were watched. */
  names = $derived(Object.fromEntries((this.watching.found?.behaviour.heads ?? []).map((head) => [head.name, LABELS[labelOf(head)]])))

  save(): void {
    remember('models', {
      ...(this.run ? { run: this.run } : {}),
      ...(this.other && this.other !== this.run ? { other: this.other } : {}),
      ...(this.model ? { model: this.model } : {}),
      ...(this.text ? { text: this.text } : {}),
      ...(this.layer ? { layer: String(this.layer) } : {}),
      ...(this.head ? { head: String(this.head) } : {}),
      ...(this.translates ? this.translating.values : {}),
      ...this.watching.values,
      ...this.asking.values,
      ...this.inside.values,
    })
  }

  async refresh(): Promise<void> {
    try {
      const [runs, models] = await Promise.all([ask<{ folder: string; runs: Run[] }>('models/runs'), ask<{ models: Model[]; askers: Asker[] }>('models/list')])
      this.runs = runs.runs
      this.folder = runs.folder
      this.models = models.models
      this.askers = models.askers
      if (!this.asking.asker && this.askers.length) this.asking.asker = this.askers[0].id
      if (!this.run && this.runs.length) this.run = (this.runs.find((run) => run.state.startsWith('running')) ?? this.runs[0]).id
      if (!this.model && this.models.length) this.model = this.models[0].id
      if (this.trouble.startsWith('The server')) this.trouble = ''
    } catch (error) {
      this.trouble = error instanceof Error ? error.message : String(error)
    } finally {
      this.loaded = true
    }
  }

  /** Follow the chosen run. */
  watch(): () => void {
    const run = this.run
    this.lines = []
    return run ? this.#follow(run, (lines, anew) => (this.lines = anew ? lines : [...this.lines, ...lines])) : () => {}
  }

  /** Follow the run beside it, and ask what differs. */
  watchOther(): () => void {
    const [run, other] = [this.run, this.other]
    this.otherLines = []
    if (!other || !run || other === run) {
      untrack(() => this.comparison.forget())
      return () => {}
    }
    untrack(() => this.comparison.send({ first: run, second: other }))
    return this.#follow(other, (lines, anew) => (this.otherLines = anew ? lines : [...this.otherLines, ...lines]))
  }

  #follow(run: string, take: (lines: Line[], anew: boolean) => void): () => void {
    const live = channel(`models/live/${run}`, (message: { lines?: Line[]; anew?: boolean; error?: { problem: string } }) => {
      if (message.error) this.trouble = message.error.problem
      else untrack(() => take(message.lines ?? [], message.anew ?? false))
    })
    return () => live.close()
  }

  askTranslation(): void {
    if (this.translates && this.text.trim()) this.translating.ask(this.model, this.text)
    else untrack(() => this.translating.forget())
  }

  /** A translator reads the sentence with its translation, so it waits for that. */
  get #waits(): boolean {
    return !this.loaded || (this.translates && this.translating.busy)
  }

  get #whole(): object {
    return { model: this.model, text: this.text, target: this.target, continuation: this.translates ? [] : this.inside.continuation }
  }

  get #sentence(): object {
    return { ...this.#whole, layer: this.layer }
  }

  /** What is looked at does not depend on the chosen layer, so choosing one asks nothing again. */
  askInside(): void {
    const question = this.#whole
    if (!this.model || !this.text.trim() || this.#waits) return
    this.inside.overview.send(question)
  }

  askEffect(): void {
    if (!this.model || !this.text.trim() || this.#waits) this.inside.effect.forget()
    else this.inside.askEffect(this.#whole)
  }

  askSecond(): void {
    if (!this.model || !this.inside.second.trim()) this.inside.other.forget()
    else this.inside.other.send({ model: this.model, text: this.inside.second, layer: this.layer, head: this.head })
  }

  /** Another sentence or model goes on differently. What a former model has read is not shown under
   * the name of the next one: its tokens have other ids. */
  startAnew(): void {
    void [this.model, this.text]
    untrack(() => {
      if (this.#reader !== this.model) {
        this.#reader = this.model
        this.#reads.stop()
        this.read = null
      }
      this.inside.continuation = []
      this.inside.place = null
      this.inside.alternatives.forget()
    })
  }

  askAlternatives(place: number): void {
    this.inside.place = place
    this.inside.alternatives.send({ model: this.model, text: this.text, prefix: this.target.slice(0, place) })
  }

  askRead(): void {
    const question = this.#sentence
    if (!this.model || !this.text.trim() || this.#waits) return
    this.reading = true
    this.#reads.ask(question)
  }

  askHead(): void {
    this.exact = null
    this.#exacts.stop() // an answer about another sentence must not come late
    if (!this.read || this.reading || this.read.layer !== this.layer || this.#waits) return
    this.#exacts.ask({ ...this.#sentence, head: this.head })
  }

  /** A study answers as one types. A model of others takes seconds, so it is asked when one says so. */
  askQuestion(): void {
    const asker = this.asker
    if (asker?.kind === 'study') this.asking.ask()
    else untrack(() => this.asking.forget())
    untrack(() => {
      if (asker?.id !== this.interview.model) this.interview.forget()
      if (asker?.kind === 'model' && this.#shared) this.putQuestion() // an address shows what it showed
      if (asker) this.#shared = false
    })
  }

  putQuestion(): void {
    if (this.asker?.kind === 'model' && this.asking.question.trim()) this.interview.ask(this.asker.id, this.asking.question)
  }

  askBehaviour(): void {
    if (!this.#waits) this.watching.ask(this.model, this.text, this.target)
  }

  close(): void {
    clearInterval(this.#timer)
    this.comparison.close()
    this.#reads.stop()
    this.#exacts.stop()
    this.translating.close()
    this.asking.close()
    this.interview.stop()
    this.watching.close()
    this.inside.close()
  }
}

function lossesOf(lines: readonly Line[]): (number | null)[] {
  return lines.map((line) => (typeof line.loss === 'number' ? line.loss : null))
}
