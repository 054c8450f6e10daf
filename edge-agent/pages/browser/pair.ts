import { call } from './api.ts'
import { readPageContext } from './page-context.ts'
import { request, every } from './platform.ts'
import { slot, write } from './elements.ts'

/**
 *   one-time link /pair#CODE ──▶ POST /v1/pair ──▶ the page that was wanted
 *
 * The program of the page that an unpaired browser gets.
 */
const { texts } = readPageContext()
const POLL_MS = 3_000
const ANSWER_MS = 5_000
/** The page that this browser gets once it is paired. */
const wanted = location.pathname === '/pair' ? `/station${location.search}` : location.href

async function pair(code: string): Promise<void> {
  write('pair-status', texts.busy)
  // The request uses the link up, so the cookie must arrive even if the user leaves this page meanwhile.
  const answer = await call('POST', '/v1/pair', { code }, { keepalive: true })
  if (answer.ok) return location.replace(wanted)
  write('pair-status', answer.status === 403 ? texts.pair.wrong : texts.requestFailed[answer.fault].what)
}

/** Pairs with the code in the address, and removes it from the history. */
function pairByAddress(): void {
  const code = location.hash.slice(1)
  if (code === '') return
  history.replaceState(null, '', location.pathname + location.search)
  void pair(code)
}

/** Opens the page if this browser is paired already: in another tab, or because a link from another site sends no cookie. */
async function openIfPaired(): Promise<void> {
  const answer = await request(wanted, { method: 'HEAD' }, ANSWER_MS).catch(() => undefined)
  if (answer?.ok) location.replace(wanted)
}

slot('pair').addEventListener('submit', (event) => {
  event.preventDefault()
  const field = slot<HTMLInputElement>('link')
  const pasted = field.value.trim()
  field.value = ''
  void pair(pasted.slice(pasted.indexOf('#') + 1))
})
addEventListener('hashchange', pairByAddress)
pairByAddress()
every(POLL_MS, () => void openIfPaired())
void openIfPaired()
