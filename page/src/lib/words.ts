/** Numbers as people read them. */

export function number(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return '–'
  const size = Math.abs(value)
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) {
    const [mantissa, exponent] = value.toExponential(digits - 1).split('e')
    return `${mantissa}·10${raised(Number(exponent))}`
  }
  return String(Number(value.toPrecision(digits))).replace('-', '−')
}

export function percent(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–'
  if (value > 0 && value < 1e-4) return `${number(value * 100, 2)} %`
  return `${number(value * 100, 3)} %`
}

function raised(exponent: number): string {
  return String(exponent).replace(/./g, (sign) => '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'['-0123456789'.indexOf(sign)])
}

export function lowered(index: number | string): string {
  return String(index).replace(/\d/g, (digit) => '₀₁₂₃₄₅₆₇₈₉'[Number(digit)])
}

export function count(value: number, one: string, many = `${one}s`): string {
  return `${value.toLocaleString('en')} ${value === 1 ? one : many}`
}
