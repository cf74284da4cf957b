/** Colours of heat maps, as tables of 256 entries. */

type Rgb = [number, number, number]

function table(stops: Rgb[]): Uint8ClampedArray {
  const result = new Uint8ClampedArray(256 * 3)
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (stops.length - 1)
    const left = Math.min(stops.length - 2, Math.floor(place))
    for (let k = 0; k < 3; k++) result[3 * i + k] = stops[left][k] + (place - left) * (stops[left + 1][k] - stops[left][k])
  }
  return result
}

const tables = {
  'diverging-light': table([[27, 73, 150], [111, 152, 222], [247, 245, 239], [232, 158, 101], [168, 76, 14]]),
  'diverging-dark': table([[150, 186, 250], [74, 108, 176], [27, 31, 39], [176, 103, 48], [250, 186, 132]]),
  'rising-light': table([[255, 255, 255], [198, 214, 245], [104, 145, 222], [43, 85, 170], [17, 34, 78]]),
  'rising-dark': table([[27, 31, 39], [40, 62, 110], [70, 113, 196], [137, 177, 248], [236, 243, 255]]),
}

export type Palette = 'diverging' | 'rising'

/** Numbers as pixels, one each. */
export function pixels(data: ArrayLike<number>, low: number, high: number, palette: Palette, dark: boolean): ImageDataArray {
  const colours = tables[`${palette}-${dark ? 'dark' : 'light'}`]
  const result = new Uint8ClampedArray(4 * data.length)
  const scale = high > low ? 255 / (high - low) : 0
  for (let i = 0; i < data.length; i++) {
    const level = 3 * Math.max(0, Math.min(255, Math.round((data[i] - low) * scale)))
    result[4 * i] = colours[level]
    result[4 * i + 1] = colours[level + 1]
    result[4 * i + 2] = colours[level + 2]
    result[4 * i + 3] = 255
  }
  return result
}

/** The largest size among numbers. */
export function largest(data: ArrayLike<number>): number {
  let most = 0
  for (let i = 0; i < data.length; i++) most = Math.max(most, Math.abs(data[i]))
  return most
}

/** A picture of numbers on a canvas, one pixel each. */
export function paint(canvas: HTMLCanvasElement, data: ArrayLike<number>, columns: number, low: number, high: number, palette: Palette, dark: boolean): void {
  canvas.width = columns
  canvas.height = Math.max(1, Math.floor(data.length / columns))
  canvas.getContext('2d')?.putImageData(new ImageData(pixels(data, low, high, palette, dark), columns), 0, 0)
}
