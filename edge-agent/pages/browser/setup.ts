import type { PageDevice } from '../model/wire.ts'
import { call } from './api.ts'
import { placeOfPage } from './place.ts'
import { slot, write } from './slots.ts'

/** The program of the set-up page: checks a device, and looks for a reader at an address. */
const { texts } = placeOfPage()

async function check(button: HTMLButtonElement, deviceId: string): Promise<void> {
  const told = document.querySelector<HTMLElement>(`[data-found="${CSS.escape(deviceId)}"]`)
  if (!told) return
  button.disabled = true
  told.textContent = texts.busy
  const answer = await call<PageDevice>('POST', '/v1/setup/check', { deviceId })
  told.textContent = answer.ok ? `${texts.deviceStates[answer.body.state]}: ${answer.body.detail}` : texts.setup.failed
  button.disabled = false
}

async function look(address: string): Promise<void> {
  write('llrp-told', texts.busy)
  slot('llrp-entry').hidden = true
  const answer = await call<{ found?: { at: string; fix?: string; entry: object }; fault?: string }>('POST', '/v1/setup/llrp', { address })
  if (!answer.ok || !answer.body.found) return write('llrp-told', (answer.ok && answer.body.fault) || texts.setup.failed)
  const { at, fix, entry } = answer.body.found
  write('llrp-told', `${texts.setup.kinds.llrp}: ${at}${fix === undefined ? '' : ` (${fix})`}`)
  write('llrp-entry', JSON.stringify(entry))
  slot('llrp-entry').hidden = false
}

for (const button of document.querySelectorAll<HTMLButtonElement>('[data-check]')) {
  button.addEventListener('click', () => void check(button, button.dataset['check'] ?? ''))
}
slot('llrp').addEventListener('submit', (event) => {
  event.preventDefault()
  void look(slot<HTMLInputElement>('address').value.trim())
})
