/** Looking into a model: every head at a glance, heads taken away, and other ways to go on. */

import { type Packed } from './api'
import { Inquiry } from './studies.svelte'

export interface Overview {
  tokens: number
  layers: number
  heads: number
  pictures: Packed
}

export interface Effect {
  loss: number | null
  changed_loss: number | null
  next: { id: number; token: string; before: number; after: number }[]
}

export interface Alternative {
  id: number
  token: string
  probability: number
  tokens: number[]
  text: string
}

export class Inside {
  overview = new Inquiry<Overview>('models/overview', 350)
  effect = new Inquiry<Effect>('models/intervene', 200)
  alternatives = new Inquiry<{ alternatives: Alternative[] }>('models/alternatives', 60)
  other = new Inquiry<{ tokens: string[]; weights: Packed }>('models/head', 250)
  /** Heads that are taken away, as "layer.head". */
  removed = $state.raw<string[]>([])
  /** Tokens that were chosen to go on with. */
  continuation = $state.raw<number[]>([])
  /** A second sentence, read by the same head. */
  second = $state('')
  /** The place in the translation whose alternatives are shown. */
  place = $state<number | null>(null)

  constructor(values: Record<string, string>) {
    this.second = values.second ?? ''
    this.removed = (values.without ?? '').split(',').filter((name) => /^\d+\.\d+$/.test(name)).slice(0, 64)
  }

  get values(): Record<string, string> {
    return { ...(this.second ? { second: this.second } : {}), ...(this.removed.length ? { without: this.removed.join(',') } : {}) }
  }

  remove(layer: number, head: number): void {
    const name = `${layer}.${head}`
    this.removed = this.removed.includes(name) ? this.removed.filter((one) => one !== name) : [...this.removed, name]
  }

  askEffect(sentence: object): void {
    if (!this.removed.length) return this.effect.forget()
    const heads = this.removed.map((name) => name.split('.').map(Number)).map(([layer, head]) => ({ layer, head }))
    this.effect.send({ ...sentence, heads })
  }

  close(): void {
    for (const one of [this.overview, this.effect, this.alternatives, this.other]) one.forget()
  }
}
