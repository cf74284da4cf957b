/** A number with so many significant figures, as Python's `:.6g` writes it. */
export function figures(value: number, digits: number): string {
  if (!Number.isFinite(value) || value === 0) return String(value)
  const exponent = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(digits)))))
  if (exponent < -4 || exponent >= digits) {
    const [mantissa, power] = value.toExponential(digits - 1).split('e')
    const size = Math.abs(Number(power))
    return `${String(Number(mantissa))}e${Number(power) < 0 ? '-' : '+'}${size < 10 ? '0' : ''}${size}`
  }
  return String(Number(value.toPrecision(digits)))
}
