/** Light or dark: as the system has it, or as chosen. Pictures made of pixels must know. */

export const themes = ['auto', 'light', 'dark'] as const
export type Theme = (typeof themes)[number]

const system = window.matchMedia('(prefers-color-scheme: dark)')
const stored = localStorage.getItem('heedful-theme') as Theme | null

class ThemeState {
  choice = $state<Theme>(stored && themes.includes(stored) ? stored : 'auto')
  #system = $state(system.matches)
  dark = $derived(this.choice === 'dark' || (this.choice === 'auto' && this.#system))

  constructor() {
    system.addEventListener('change', (event) => (this.#system = event.matches))
  }

  apply(): void {
    if (this.choice === 'auto') document.documentElement.removeAttribute('data-theme')
    else document.documentElement.setAttribute('data-theme', this.choice)
    localStorage.setItem('heedful-theme', this.choice)
  }
}

export const theme = new ThemeState()
