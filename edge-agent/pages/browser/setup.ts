import { deviceDetail, deviceState } from '../model/status-view.ts'
import type { PageDevice } from '../model/wire.ts'
import { call } from './api.ts'
import { readPageContext } from './page-context.ts'
import { slot, write, writeTechnical } from './elements.ts'

/**
 * Script of the set-up page. The script checks devices, finds a reader at an address and adds devices to the
 * configuration.
 */
const { texts } = readPageContext()

async function check(button: HTMLButtonElement, deviceId: string): Promise<void> {
  const status = document.querySelector<HTMLElement>(`[data-found="${CSS.escape(deviceId)}"]`)
  const detail = document.querySelector<HTMLElement>(`[data-detail="${CSS.escape(deviceId)}"]`)
  if (!status || !detail) return
  button.disabled = true
  status.textContent = texts.busy
  writeTechnical(detail, '')
  const answer = await call<PageDevice>('POST', '/v1/setup/check', { deviceId })
  status.textContent = answer.ok ? deviceState(answer.body, texts) : texts.setup.failed
  writeTechnical(detail, answer.ok ? deviceDetail(answer.body, texts) : answer.error)
  button.disabled = false
}

async function findReader(address: string): Promise<void> {
  const technical = slot('llrp-technical')
  write('llrp-status', texts.busy)
  writeTechnical(technical, '')
  slot('llrp-entry').hidden = true
  const answer = await call<{ found?: { at: string; fix?: string; entry: object }; fault?: string }>(
    'POST',
    '/v1/setup/llrp',
    { address },
  )
  if (!answer.ok || !answer.body.found) {
    write('llrp-status', texts.setup.failed)
    return writeTechnical(technical, answer.ok ? (answer.body.fault ?? '') : answer.error)
  }
  const { at, fix, entry } = answer.body.found
  write('llrp-status', `${texts.setup.kinds.llrp}: ${at}`)
  writeTechnical(technical, fix ?? '')
  const place = slot('llrp-entry').querySelector<HTMLElement>('[data-entry]')
  if (place instanceof HTMLTextAreaElement) place.value = JSON.stringify(entry)
  else if (place) place.textContent = JSON.stringify(entry)
  slot('llrp-entry').hidden = false
}

/** Adds the entry in the field to the configuration, or shows the faults of the entry. */
async function addDevice(form: HTMLFormElement): Promise<void> {
  const [field, status, technical, button] = [
    form.querySelector('textarea'),
    form.querySelector('[data-status]'),
    form.querySelector<HTMLElement>('[data-technical]'),
    form.querySelector('button'),
  ]
  if (!field || !status || !technical || !button) return
  const entry = parsed(field.value)
  writeTechnical(technical, '')
  if (entry === undefined) return void (status.textContent = texts.setup.noEntry)
  button.disabled = true
  const answer = await call<{ file: string }>('POST', '/v1/setup/devices', { entry })
  status.textContent = answer.ok ? texts.setup.written : texts.setup.failed
  writeTechnical(technical, answer.ok ? '' : answer.error)
  // After a success the button stays disabled: the deviceId exists now, so the agent would reject a second request.
  button.disabled = answer.ok
}

function parsed(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

for (const form of document.querySelectorAll<HTMLFormElement>('[data-write]')) {
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void addDevice(form)
  })
}
for (const button of document.querySelectorAll<HTMLButtonElement>('[data-check]')) {
  button.addEventListener('click', () => void check(button, button.dataset['check'] ?? ''))
}
slot('llrp').addEventListener('submit', (event) => {
  event.preventDefault()
  void findReader(slot<HTMLInputElement>('address').value.trim())
})
