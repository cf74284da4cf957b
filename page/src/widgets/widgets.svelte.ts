/** The entry of anywidget: a view of a Python model, drawn by the components of the page. */
import { mount, unmount, type Component } from 'svelte'
import styles from '../page.css?inline'
import { theme } from '../lib/theme.svelte'
import ClaimsWidget from './ClaimsWidget.svelte'
import HeadsWidget from './HeadsWidget.svelte'
import HeatMapWidget from './HeatMapWidget.svelte'
import PlaneWidget from './PlaneWidget.svelte'
import { Shared, type Model } from './shared.svelte'
import WeightsWidget from './WeightsWidget.svelte'

const kinds: Record<string, Component<{ shared: Shared }>> = {
  plane: PlaneWidget,
  weights: WeightsWidget,
  heatmap: HeatMapWidget,
  heads: HeadsWidget,
  claims: ClaimsWidget,
}

// What the page says of its root and its html element holds for the root of a widget.
const sheet = styles.replace(/:root(\[[^\]]*\])/g, ':host($1)').replaceAll(':root', ':host').replace(/(^|[}\s])html\s*\{/, '$1:host {') + ':host { display: block; background: none; }'

/** Whether the notebook is dark, if it says so: JupyterLab and VS Code do, each in its way. */
function darkNotebook(): boolean | null {
  const { jpThemeLight, vscodeThemeKind } = document.body.dataset
  if (jpThemeLight) return jpThemeLight === 'false'
  if (vscodeThemeKind) return !vscodeThemeKind.includes('light')
  return null
}

function followTheme(): () => void {
  const look = (): void => {
    const dark = darkNotebook()
    theme.choice = dark === null ? 'auto' : dark ? 'dark' : 'light'
  }
  look()
  const observer = new MutationObserver(look)
  observer.observe(document.body, { attributes: true, attributeFilter: ['data-jp-theme-light', 'data-vscode-theme-kind', 'class'] })
  return () => observer.disconnect()
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const host = document.createElement('div')
  el.append(host)
  const root = host.attachShadow({ mode: 'open' })
  const style = document.createElement('style')
  style.textContent = sheet
  const body = document.createElement('div')
  root.append(style, body)
  const unfollow = followTheme()
  const uncolour = $effect.root(() => {
    $effect(() => {
      host.dataset.theme = theme.dark ? 'dark' : 'light'
    })
  })
  const shared = new Shared(model)
  const drawn = mount(kinds[model.get('_kind') as string], { target: body, props: { shared } })
  return () => {
    void unmount(drawn)
    shared.close()
    uncolour()
    unfollow()
    host.remove()
  }
}

export default { render }
