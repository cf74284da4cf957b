import 'katex/dist/katex.min.css'
import 'uplot/dist/uPlot.min.css'
import './page.css'
import { mount } from 'svelte'
import App from './App.svelte'
import { loadAbout } from './lib/about'
import Attention from './views/Attention.svelte'
import Claims from './views/Claims.svelte'
import Models from './views/Models.svelte'
import Positions from './views/Positions.svelte'

const pages = { attention: ['Attention', Attention], claims: ['Claims', Claims], positions: ['Positions', Positions], models: ['Models', Models] } as const
void loadAbout().then(() => mount(App, { target: document.getElementById('app')!, props: { pages } }))
