/** Figures as files: SVG with title, legend, parameters and its styles inside, PNG at twice the size, the data behind; and texts. */

const STYLES = [
  'fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray', 'stroke-linecap',
  'stroke-linejoin', 'opacity', 'font-family', 'font-size', 'font-weight', 'font-style', 'text-anchor',
  'dominant-baseline', 'image-rendering', 'paint-order',
]

export interface Table {
  columns: string[]
  rows: (string | number | null)[][]
}

/** A sign of the drawing, and what it stands for. */
export interface Mark {
  name: string
  colour: 'ink' | 'soft' | 'faint' | 'blue' | 'orange' | 'green' | 'red' | 'purple' | 'yellow'
  shape: 'dot' | 'hollow' | 'ring' | 'square' | 'diamond' | 'bar' | 'line' | 'dashes' | 'band'
}

/** What stands around a drawing that leaves the page: it must be understood without it. */
export interface Description {
  title: string
  legend?: Mark[]
  /** Settings it was made with, each as "name = value". */
  parameters?: string[]
}

const SVG = 'http://www.w3.org/2000/svg'
const [HEAD, LINE, MARGIN] = [34, 19, 12]

/** The figure as SVG text that looks the same without this page. */
export function svgText(figure: SVGSVGElement, about?: Description): string {
  return drawing(figure, about).text
}

function drawing(figure: SVGSVGElement, about?: Description): { text: string; width: number; height: number } {
  const copy = figure.cloneNode(true) as SVGSVGElement
  const originals = [figure, ...figure.querySelectorAll('*')]
  const copies = [copy, ...copy.querySelectorAll('*')]
  originals.forEach((original, place) => {
    const computed = getComputedStyle(original)
    const target = copies[place]
    for (const name of STYLES) {
      const value = computed.getPropertyValue(name)
      if (value) target.setAttribute(name, value)
    }
    for (const name of ['class', 'tabindex', 'role', 'style']) target.removeAttribute(name)
  })
  copy.querySelectorAll('[data-unsaved]').forEach((node) => node.remove())
  const box = figure.viewBox.baseVal
  const around = about ? surroundings(figure, about, box) : { above: 0, below: 0, nodes: [] }
  const place = { x: box.x, y: box.y - around.above, width: box.width, height: box.height + around.above + around.below }
  copy.setAttribute('xmlns', SVG)
  copy.setAttribute('viewBox', `${place.x} ${place.y} ${place.width} ${place.height}`)
  copy.setAttribute('width', String(place.width))
  copy.setAttribute('height', String(place.height))
  copy.prepend(node('rect', { ...place, fill: groundColour(figure) }))
  copy.append(...around.nodes)
  return { text: new XMLSerializer().serializeToString(copy), width: place.width, height: place.height }
}

/** Title above, legend and parameters below, as wide as the drawing. */
function surroundings(figure: SVGSVGElement, about: Description, box: DOMRect): { above: number; below: number; nodes: Element[] } {
  const colour = colours(figure)
  const family = getComputedStyle(figure).fontFamily
  const [left, right] = [box.x + MARGIN, box.x + box.width - MARGIN]
  const nodes: Element[] = []
  const text = (content: string, x: number, y: number, size: number, fill: string): void => {
    const one = node('text', { x, y, fill, 'font-size': size, 'font-family': family })
    one.textContent = content
    nodes.push(one)
  }
  const title = node('title', {})
  title.textContent = about.title
  nodes.push(title)
  const lines = wrapped(about.title, 16, right - left, family)
  const above = HEAD + 20 * (lines.length - 1)
  let y = box.y - above + 22
  for (const line of lines) {
    text(line, left, y, 16, colour('ink'))
    y += 20
  }
  y = box.y + box.height + LINE
  let x = left
  for (const mark of about.legend ?? []) {
    const width = 20 + measured(mark.name, 12, family) + 16
    if (x > left && x + width > right) [x, y] = [left, y + LINE]
    nodes.push(...sign(mark, x, y - 4, colour))
    text(mark.name, x + 20, y, 12, colour('soft'))
    x += width
  }
  if (about.legend?.length) y += LINE
  for (const line of wrapped((about.parameters ?? []).join(' · '), 11.5, right - left, family)) {
    text(line, left, y, 11.5, colour('faint'))
    y += LINE - 3
  }
  return { above, below: y - LINE + MARGIN - box.y - box.height, nodes }
}

function sign(mark: Mark, x: number, y: number, colour: (name: string) => string): Element[] {
  const own = colour(mark.colour)
  switch (mark.shape) {
    case 'dot':
      return [node('circle', { cx: x + 7, cy: y, r: 4.5, fill: own })]
    case 'hollow':
      return [node('circle', { cx: x + 7, cy: y, r: 4, fill: 'none', stroke: own, 'stroke-width': 1.6 })]
    case 'ring':
      return [node('circle', { cx: x + 7, cy: y, r: 6, fill: 'none', stroke: own, 'stroke-width': 2 })]
    case 'square':
      return [node('rect', { x: x + 3, y: y - 4, width: 8, height: 8, fill: 'none', stroke: own, 'stroke-width': 1.4 })]
    case 'diamond':
      return [node('path', { d: `M${x + 7} ${y - 6}l6 6l-6 6l-6-6z`, fill: own })]
    case 'bar':
      return [node('rect', { x: x + 3, y: y - 5, width: 9, height: 10, fill: own })]
    case 'band':
      return [node('rect', { x, y: y - 3.5, width: 15, height: 7, fill: own, opacity: 0.35 })]
    default:
      return [node('line', { x1: x, x2: x + 15, y1: y, y2: y, stroke: own, 'stroke-width': 2, ...(mark.shape === 'dashes' ? { 'stroke-dasharray': '4 3' } : {}) })]
  }
}

function node(name: string, values: Record<string, string | number>): Element {
  const made = document.createElementNS(SVG, name)
  for (const [key, value] of Object.entries(values)) made.setAttribute(key, String(value))
  return made
}

const ruler = document.createElement('canvas').getContext('2d')

function measured(text: string, size: number, family: string): number {
  if (!ruler) return text.length * size * 0.56
  ruler.font = `${size}px ${family}`
  return ruler.measureText(text).width
}

function wrapped(text: string, size: number, width: number, family: string): string[] {
  const lines: string[] = []
  for (const word of text.split(' ').filter(Boolean)) {
    const longer = lines.length ? `${lines[lines.length - 1]} ${word}` : word
    if (lines.length && measured(longer, size, family) > width) lines.push(word)
    else lines[Math.max(0, lines.length - 1)] = longer
  }
  return lines
}

/** The colours of the page as they are now, light or dark, so that a file holds no names of ours. */
function colours(figure: Element): (name: string) => string {
  const probe = document.createElement('span')
  ;(figure.parentElement ?? document.body).append(probe)
  const found: Record<string, string> = {}
  for (const name of ['ink', 'soft', 'faint', 'blue', 'orange', 'green', 'red', 'purple', 'yellow']) {
    probe.style.color = `var(--${name})`
    found[name] = getComputedStyle(probe).color
  }
  probe.remove()
  return (name) => found[name]
}

function groundColour(element: Element): string {
  for (let node: Element | null = element; node; node = node.parentElement) {
    const colour = getComputedStyle(node).backgroundColor
    if (colour && !/rgba\(.*, 0\)|transparent/.test(colour)) return colour
  }
  return 'white'
}

export function saveSvg(figure: SVGSVGElement, name: string, about?: Description): void {
  download(new Blob([svgText(figure, about)], { type: 'image/svg+xml' }), `${name}.svg`)
}

export async function savePng(figure: SVGSVGElement, name: string, about?: Description): Promise<void> {
  const drawn = drawing(figure, about)
  const address = URL.createObjectURL(new Blob([drawn.text], { type: 'image/svg+xml' }))
  try {
    const image = new Image()
    // Not image.decode(): it may wait for a frame that a page at rest never draws.
    await new Promise((done, fail) => {
      image.onload = done
      image.onerror = fail
      image.src = address
    })
    const canvas = document.createElement('canvas')
    canvas.width = Math.round(2 * drawn.width)
    canvas.height = Math.round(2 * drawn.height)
    canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height)
    const content = await new Promise<Blob | null>((done) => canvas.toBlob(done, 'image/png'))
    if (content) download(content, `${name}.png`)
  } finally {
    URL.revokeObjectURL(address)
  }
}

export function saveJson(content: unknown, name: string): void {
  const text = JSON.stringify(content, (_, value) => (ArrayBuffer.isView(value) ? Array.from(value as unknown as number[]) : value), 1)
  download(new Blob([text + '\n'], { type: 'application/json' }), `${name}.json`)
}

export function saveCsv(table: Table, name: string): void {
  const cell = (value: string | number | null): string =>
    value === null ? '' : typeof value === 'number' ? String(value) : `"${value.replaceAll('"', '""')}"`
  const lines = [table.columns, ...table.rows].map((row) => row.map(cell).join(','))
  download(new Blob([lines.join('\r\n') + '\r\n'], { type: 'text/csv' }), `${name}.csv`)
}

/** A text as a file of the given name, such as answers.md. */
export function saveText(text: string, name: string): void {
  download(new Blob([text], { type: 'text/plain;charset=utf-8' }), name)
}

function download(content: Blob, name: string): void {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(content)
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
}
