import 'katex/dist/katex.min.css'
import 'uplot/dist/uPlot.min.css'
import './page.css'
import { mount } from 'svelte'
import App from './App.svelte'
import { loadAbout } from './lib/about'

void loadAbout().then(() => mount(App, { target: document.getElementById('app')! }))
