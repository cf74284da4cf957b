/** A tour in eight steps for somebody who has the question sheet in hand; it can be left, and is then where it was. */

import { go, type View } from './address.svelte'

export interface Step {
  title: string
  /** Where the sheets ask about it. */
  sheet: string
  text: string
  /** What to do now. */
  task: string
  view: View
  /** The state in which the view is opened. */
  values: Record<string, string>
  /** What is pointed at: the element with this `data-tour`. */
  at: string
}

export const STEPS: readonly Step[] = [
  {
    title: 'What attention computes',
    sheet: 'equations (1) and (2)',
    text: 'A query q is compared with every key. The softmax of k·q gives weights α that add up to 1, and the output c is the mean of the values with these weights. Here each value lies where its key is.',
    task: 'Drag the blue handle of q, or give it the focus and press arrow keys. Watch the bars, and the orange c.',
    view: 'attention',
    values: { keys: 'circle', n: '6', beta: '3', q: '1,0', of: '', noisy: '-1' },
    at: 'plane',
  },
  {
    title: 'Copying one value',
    sheet: 'question (a)',
    text: 'Nearly all weight lands on one key when k·q is larger for it than for every other key, by a margin that grows with ln n. A long query does it.',
    task: 'Key 2 is chosen. Press “Copy this”, read the certificate, then shorten β until the mass on the chosen key falls below 0.99.',
    view: 'attention',
    values: { keys: 'orthonormal', n: '8', d: '8', beta: '1', of: '2', noisy: '-1' },
    at: 'design',
  },
  {
    title: 'A key that cannot be copied',
    sheet: 'question (a), what must be true',
    text: 'A key inside the convex hull of the others never has the largest k·q alone, whatever the query: it is drawn hollow. The page proves it by the mixture of other keys that makes the same point.',
    task: 'Press “Copy this” for key 3. Then drag key 3 out of the hull, or type other coordinates below, and try again.',
    view: 'attention',
    values: { rows: '2,0;0,2;-2,-1;0.1,0.2', beta: '6', of: '3', noisy: '-1' },
    at: 'design',
  },
  {
    title: 'Averaging two values',
    sheet: 'question (b)',
    text: 'For orthonormal keys, β(k_a + k_b) gives both keys the same weight; how close c comes to ½(v_a + v_b) depends on β and on the number of keys.',
    task: 'Press “Average these”. Type another number into “within” and compare the length of the query.',
    view: 'attention',
    values: { keys: 'orthonormal', n: '8', d: '8', beta: '2', of: '0,1', noisy: '-1' },
    at: 'design',
  },
  {
    title: 'A key of uncertain length',
    sheet: 'question (c)',
    text: 'Now key 0 is noisy along itself, as in the figure of the sheet. One head that looks at k_a + k_b swings from one value to the other: each dot is the output for one draw of the keys.',
    task: 'Read the share of draws that fail. Make v smaller and larger, then β. Does a longer query help?',
    view: 'attention',
    values: { keys: 'orthonormal', n: '8', d: '8', beta: '20', of: '0,1', noisy: '0', variance: '0.5' },
    at: 'noise',
  },
  {
    title: 'Two heads',
    sheet: 'question (d)',
    text: 'With a head for each key, their outputs are averaged after the softmax: the noise reaches one of them only. The picture on the right has the same keys and the same noise.',
    task: 'Compare both percentages. Then press “Make robust” above: two queries that this noise disturbs less.',
    view: 'attention',
    values: { keys: 'orthonormal', n: '8', d: '8', beta: '20', of: '0,1', noisy: '0', variance: '0.5', q: '1,0,0,0,0,0,0,0;0,1,0,0,0,0,0,0' },
    at: 'noise',
  },
  {
    title: 'Order, and positions',
    sheet: 'the questions about position embeddings',
    text: 'Self-attention without positions does not see the order of words: permute the rows of the input, and the rows of the output are permuted. Positions, or a causal mask, break that.',
    task: 'Tick “with positions”, then “with a causal mask”, and see which words become something else.',
    view: 'positions',
    values: { kind: 'sinusoidal', first: 'dog bites man', second: 'man bites dog', positions: 'no', mask: 'no' },
    at: 'order',
  },
  {
    title: 'Your own answer',
    sheet: 'all of them',
    text: 'Write what you believe as a claim; LaTeX as it stands in your answer will do. It is proved, supported, or refuted with the smallest case in which it fails, and a repair if there is one.',
    task: 'Change a formula of the sheet, or fill in the form, and wait for the verdict. “Apply the repair” can be undone.',
    view: 'claims',
    values: {},
    at: 'sheet',
  },
]

const STORE = 'heedful-tour'

interface Kept {
  step: number
  done: boolean
}

function kept(): Kept {
  try {
    const found = JSON.parse(localStorage.getItem(STORE) ?? '{}')
    const step = Number.isInteger(found.step) && found.step >= 0 && found.step < STEPS.length ? found.step : 0
    return { step, done: found.done === true }
  } catch {
    return { step: 0, done: false }
  }
}

class Tour {
  open = $state(false)
  step = $state(kept().step)
  done = $state(kept().done)

  /** What the button that begins it says. */
  get invitation(): string {
    return this.step > 0 && !this.done ? `Tour: on with step ${this.step + 1}` : 'Tour'
  }

  /** Begin, or go on where it was left. */
  start(): void {
    if (this.done) this.step = 0
    this.done = false
    this.open = true
    this.show(this.step)
  }

  show(step: number): void {
    this.step = Math.min(STEPS.length - 1, Math.max(0, step))
    this.#keep()
    go(STEPS[this.step].view, STEPS[this.step].values)
  }

  leave(): void {
    this.open = false
    this.#keep()
  }

  finish(): void {
    this.done = true
    this.leave()
  }

  #keep(): void {
    localStorage.setItem(STORE, JSON.stringify({ step: this.step, done: this.done }))
  }
}

export const tour = new Tour()
