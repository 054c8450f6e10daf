import { deviceDetail, deviceState } from '../model/status-view.ts'
import type { DeviceFinding } from '../../setup/device-discovery.ts'
import type { PageDevice } from '../model/wire.ts'
import { call } from './api.ts'
import { after } from './platform.ts'
import { readPageContext } from './page-context.ts'
import { slot, write, writeTechnical } from './elements.ts'
import { settingsForm, type Entry, type SettingsForm } from './settings-form.ts'

/**
 * Script of the set-up page. The script checks and tests devices, finds readers and boards at an address, and registers
 * and adds devices.
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

async function findAtAddress(address: string): Promise<void> {
  const technical = slot('search-technical')
  const place = slot('search-entry')
  write('search-status', texts.busy)
  writeTechnical(technical, '')
  place.hidden = true
  const answer = await call<{
    found?: { kind: DeviceFinding; at: string; fix?: string; entry: Entry }
    fault?: string
  }>('POST', '/v1/setup/search', { address })
  if (!answer.ok || !answer.body.found) {
    write('search-status', texts.setup.failed)
    return writeTechnical(technical, answer.ok ? (answer.body.fault ?? '') : answer.error)
  }
  const { kind, at, fix, entry } = answer.body.found
  write('search-status', `${texts.setup.kinds[kind]}: ${at}`)
  writeTechnical(technical, fix ?? '')
  const form = place.querySelector('form')
  if (form) forms.get(form)?.load(entry)
  const type = form?.querySelector<HTMLSelectElement>('[data-type]')
  if (type) type.value = kind === 'llrp' ? 'exit_gate' : 'self_checkout_detacher'
  const copied = place.querySelector('pre')
  if (copied) copied.textContent = JSON.stringify(entry)
  place.hidden = false
}

/** The places where a form or group shows its result. */
function resultsOf(place: HTMLElement): { show(text: string, technical?: string): void } {
  const status = place.querySelector<HTMLElement>('[data-status]')
  const details = place.querySelector<HTMLElement>('[data-technical]')
  return {
    show(text, technical = '') {
      if (status) status.textContent = text
      if (details) writeTechnical(details, technical)
    },
  }
}

const problem = (code: string): string => texts.setup.problems[code] ?? texts.setup.failed

/** Registers the device if there is a code, and adds the entry to the configuration, or marks the faults. */
async function addDevice(form: HTMLFormElement): Promise<void> {
  const [code, type, name, button] = [
    form.querySelector<HTMLInputElement>('[data-code]'),
    form.querySelector<HTMLSelectElement>('[data-type]'),
    form.querySelector<HTMLInputElement>('[data-name]'),
    form.querySelector('button'),
  ]
  const fields = forms.get(form)
  if (!fields || !code || !type || !name || !button) return
  const results = resultsOf(form)
  const entry = fields.entry()
  fields.mark([])
  if (entry === undefined) return results.show(texts.setup.noEntry)
  const called = name.value.trim()
  const registration = { code: code.value.trim(), deviceType: type.value, ...(called !== '' && { name: called }) }
  button.disabled = true
  results.show(texts.busy)
  const answer = await call<{ deviceId: string }>('POST', '/v1/setup/devices', {
    entry,
    ...(registration.code !== '' && { registration }),
  })
  button.disabled = false
  if (!answer.ok) {
    const { labels, rest } = fields.mark(answer.details)
    const text = labels.length > 0 ? texts.setup.correct(labels.join(', ')) : problem(answer.code)
    return results.show(text, labels.length === 0 ? answer.error : rest.join('; '))
  }
  // The server renders the page again, with the new device and its tests.
  const url = new URL(location.href)
  url.searchParams.set('added', answer.body.deviceId)
  location.assign(url)
}

/** Switches an output of a new device and shows what the device answered. */
async function testOutput(place: HTMLElement, button: HTMLButtonElement, output: string): Promise<void> {
  const results = resultsOf(place)
  button.disabled = true
  results.show(texts.busy)
  const answer = await call<{ outcome: 'confirmed' | 'failed' | 'unknown'; detail: string }>('POST', '/v1/setup/test', {
    deviceId: place.dataset['tests'],
    output,
  })
  button.disabled = false
  if (!answer.ok) return results.show(problem(answer.code), answer.error)
  const { outcome, detail } = answer.body
  results.show(texts.setup.tested[detail.startsWith('not_supported') ? 'not_supported' : outcome], detail)
}

/** Records one walk through a gate and shows which tags the gate saw. */
async function walk(place: HTMLElement, button: HTMLButtonElement, seconds: number): Promise<void> {
  const results = resultsOf(place)
  const deviceId = place.dataset['tests'] ?? ''
  button.disabled = true
  const started = await call('POST', '/v1/setup/walk-test', { deviceId, seconds })
  results.show(started.ok ? texts.setup.walkHint(seconds) : texts.setup.failed, started.ok ? '' : started.error)
  if (!started.ok) return void (button.disabled = false)
  after(seconds * 1_000, () => void showWalk(results, button, deviceId))
}

async function showWalk(
  results: ReturnType<typeof resultsOf>,
  button: HTMLButtonElement,
  deviceId: string,
): Promise<void> {
  const answer = await call<{ tags: { left: { severity: string } | null }[] }>(
    'GET',
    `/v1/setup/walk-test?${new URLSearchParams({ deviceId })}`,
  )
  button.disabled = false
  if (!answer.ok) return results.show(texts.setup.failed, answer.error)
  const { tags } = answer.body
  const left = tags.flatMap((tag) => tag.left ?? [])
  const alarms = left.filter(({ severity }) => severity === 'siren' || severity === 'notify')
  results.show(texts.setup.walked(tags.length, left.length, alarms.length))
}

/** The fields of each form. */
const forms = new Map<HTMLFormElement, SettingsForm>()
for (const form of document.querySelectorAll<HTMLFormElement>('[data-write]')) {
  forms.set(form, settingsForm(form))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void addDevice(form)
  })
}
for (const place of document.querySelectorAll<HTMLElement>('[data-tests]')) {
  for (const button of place.querySelectorAll('button')) {
    const { test, walk: seconds } = button.dataset
    button.addEventListener('click', () => {
      if (test !== undefined) void testOutput(place, button, test)
      if (seconds !== undefined) void walk(place, button, Number(seconds))
    })
  }
}
document.querySelector<HTMLElement>('[data-added]')?.focus()
for (const button of document.querySelectorAll<HTMLButtonElement>('[data-check]')) {
  button.addEventListener('click', () => void check(button, button.dataset['check'] ?? ''))
}
slot('search').addEventListener('submit', (event) => {
  event.preventDefault()
  void findAtAddress(slot<HTMLInputElement>('address').value.trim())
})
