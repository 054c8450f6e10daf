import { call } from './api.ts'
import { readPageContext, slot, write } from './elements.ts'
import { request, every } from './platform.ts'

/**
 * Script of the page for unpaired browsers. The script sends the code of a one-time link `/pair#CODE` to the agent,
 * then opens the requested page.
 */
const { texts } = readPageContext()
const POLL_MS = 3_000
const ANSWER_MS = 5_000
/** Page to open after the pairing. */
const wanted = location.pathname === '/pair' ? `/station${location.search}` : location.href

async function pair(code: string): Promise<void> {
  write('pair-status', texts.busy)
  // The request uses up the link. So the request must finish even if the user leaves this page.
  const answer = await call('POST', '/v1/pair', { code }, { keepalive: true })
  if (answer.ok) return location.replace(wanted)
  write('pair-status', answer.status === 403 ? texts.pair.wrong : texts.requestFailed[answer.fault].what)
}

/** Pairs with the code in the address. Removes the code from the history. */
function pairByAddress(): void {
  const code = location.hash.slice(1)
  if (code === '') return
  history.replaceState(null, '', location.pathname + location.search)
  void pair(code)
}

/**
 * Opens the page if the browser is paired. Another tab may have paired the browser. Or the browser was paired but sent
 * no cookie, because a link on another site opened this page.
 */
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
