/** Figures as files: SVG with its styles inside, PNG at twice the size, the data behind; and texts. */

const STYLES = [
  'fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray', 'stroke-linecap',
  'stroke-linejoin', 'opacity', 'font-family', 'font-size', 'font-weight', 'font-style', 'text-anchor',
  'dominant-baseline', 'image-rendering', 'paint-order',
]

export interface Table {
  columns: string[]
  rows: (string | number | null)[][]
}

/** The figure as SVG text that looks the same without this page. */
export function svgText(figure: SVGSVGElement): string {
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
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  copy.setAttribute('width', String(box.width))
  copy.setAttribute('height', String(box.height))
  const ground = document.createElementNS('http://www.w3.org/2000/svg', 'rect')
  const values = { x: box.x, y: box.y, width: box.width, height: box.height, fill: groundColour(figure) }
  for (const [name, value] of Object.entries(values)) ground.setAttribute(name, String(value))
  copy.prepend(ground)
  return new XMLSerializer().serializeToString(copy)
}

function groundColour(element: Element): string {
  for (let node: Element | null = element; node; node = node.parentElement) {
    const colour = getComputedStyle(node).backgroundColor
    if (colour && !/rgba\(.*, 0\)|transparent/.test(colour)) return colour
  }
  return 'white'
}

export function saveSvg(figure: SVGSVGElement, name: string): void {
  download(new Blob([svgText(figure)], { type: 'image/svg+xml' }), `${name}.svg`)
}

export async function savePng(figure: SVGSVGElement, name: string): Promise<void> {
  const address = URL.createObjectURL(new Blob([svgText(figure)], { type: 'image/svg+xml' }))
  try {
    const image = new Image()
    // Not image.decode(): it may wait for a frame that a page at rest never draws.
    await new Promise((done, fail) => {
      image.onload = done
      image.onerror = fail
      image.src = address
    })
    const box = figure.viewBox.baseVal
    const canvas = document.createElement('canvas')
    canvas.width = Math.round(2 * box.width)
    canvas.height = Math.round(2 * box.height)
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
