import 'katex/dist/katex.min.css'
import '../page.css'
import { mount } from 'svelte'
import { loadAbout } from '../lib/about'
import { desk } from '../lib/api'
import { answer } from './answers'
import Site from './Site.svelte'

desk.answer = answer
Object.assign(globalThis, { heedfulAsk: answer }) // so that tests, and the curious, ask the very code that runs
void loadAbout().then(() => mount(Site, { target: document.getElementById('app')! }))
