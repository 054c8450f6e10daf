import { deviceDetail, deviceState } from '../model/status-view.ts'
import type { DeviceFinding, SearchCause } from '../../setup/device-discovery.ts'
import { faultText } from '../model/setting-fault.ts'
import type { PageDevice } from '../model/wire.ts'
import { call, type FieldFault } from './api.ts'
import { after } from './platform.ts'
import { readPageContext, slot, write, writeTechnical, newElement } from './elements.ts'

/**
 *   fields ◀──▶ entry as JSON ─▶ agent, which validates it
 *
 * The fields of one device. The JSON text of the form is the only state: a field changes its part of the text, and a
 * changed text fills in the fields again. So a setting that has no field is never lost.
 */

type Entry = Record<string, unknown>

interface SettingsForm {
  /** Replaces the entry. */
  load(entry: Entry): void
  /** The entry; undefined if the text is not a JSON object. */
  entry(): Entry | undefined
  /** Marks the fields with faults and moves the focus to the first. Returns their labels, and faults without a field. */
  mark(faults: readonly FieldFault[]): { labels: string[]; rest: string[] }
}

/** Placeholder for the id in a suggested entry, `UNNAMED_DEVICE` of the agent. */
const UNNAMED = 'dev_…'

/** Prepares the form of one device. */
function settingsForm(form: HTMLFormElement): SettingsForm {
  const text = find<HTMLTextAreaElement>(form, 'textarea[data-entry]')
  const driver = find<HTMLSelectElement>(form, '[data-driver-choice]')
  const [main, more] = [find(form, '[data-settings]'), find(form, '[data-more-settings]')]

  const entry = () => parsed(text.value)
  const store = (value: Entry) => (text.value = JSON.stringify(value, null, 2))
  const fields = () => [...form.querySelectorAll<HTMLElement>('[data-path]')]

  function fill(value: Entry): void {
    for (const field of fields()) {
      const input = inputOf(field)
      if (input && document.activeElement !== input) input.value = shown(field, valueAt(value, pathOf(field)))
    }
  }

  /** Shows the fields of the entry's driver. Those that the entry has or needs come first. */
  function build(value: Entry): void {
    driver.value = String(value['driver'] ?? '')
    main.replaceChildren()
    more.replaceChildren()
    const template = document.querySelector<HTMLTemplateElement>(`template[data-driver="${CSS.escape(driver.value)}"]`)
    for (const field of template ? [...template.content.cloneNode(true).childNodes] : []) {
      if (!(field instanceof HTMLElement)) continue
      const isFirst = valueAt(value, pathOf(field)) !== undefined || isNeeded(field, value)
      ;(isFirst ? main : more).append(field)
    }
    const details = more.closest('details')
    if (details) details.hidden = more.childElementCount === 0
    fill(value)
  }

  form.addEventListener('input', ({ target }) => {
    const value = entry()
    if (target === text) return value && (value['driver'] === driver.value ? fill(value) : build(value))
    if (target === driver) {
      const { deviceId = UNNAMED, link } = value ?? {}
      const next = { deviceId, driver: driver.value, ...(link !== undefined && { link }) }
      store(next)
      return build(next)
    }
    const field = target instanceof Element ? target.closest<HTMLElement>('[data-path]') : null
    if (field && value) store(withValue(value, pathOf(field), typed(field)))
  })

  const start = entry()
  if (start) {
    store(start)
    build(start)
  }
  return {
    entry,
    load(value) {
      store(value)
      build(value)
    },
    mark: (faults) => mark(fields(), faults),
  }
}

function find<E extends HTMLElement>(form: HTMLElement, selector: string): E {
  const found = form.querySelector<E>(selector)
  if (!found) throw new Error(`this form has no ${selector}`)
  return found
}

const pathOf = (field: HTMLElement) => (field.dataset['path'] ?? '').split('.')
const inputOf = (field: HTMLElement) => field.querySelector<HTMLInputElement | HTMLSelectElement>('input, select')

function parsed(text: string): Entry | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function valueAt(entry: unknown, [name, ...rest]: readonly string[]): unknown {
  if (name === undefined) return entry
  return isObject(entry) ? valueAt(entry[name], rest) : undefined
}

/** Returns the entry with another value. An object without values is removed with its last value. */
function withValue(entry: Entry, [name = '', ...rest]: readonly string[], value: unknown): Entry {
  const { [name]: former, ...others } = entry
  const next = rest.length === 0 ? value : withValue(isObject(former) ? former : {}, rest, value)
  const isGone = next === undefined || (rest.length > 0 && isObject(next) && Object.keys(next).length === 0)
  // An existing setting keeps its place in the text.
  if (!(name in entry)) return isGone ? others : { ...entry, [name]: next }
  return isGone
    ? others
    : Object.fromEntries(Object.entries(entry).map(([key, old]) => [key, key === name ? next : old]))
}

/** True if every entry needs the field, or if it belongs to the first form of a setting that has no value yet. */
function isNeeded(field: HTMLElement, value: Entry): boolean {
  const { needed } = field.dataset
  const [group = ''] = pathOf(field)
  return needed === 'always' || needed === 'shown' || (needed === 'variant' && value[group] === undefined)
}

/** The text of a value in its field. */
function shown(field: HTMLElement, value: unknown): string {
  if (value === undefined || value === UNNAMED) return ''
  const { kind } = field.dataset
  if (kind === 'choice' || kind === 'device') return JSON.stringify(value)
  if (kind === 'numbers') return Array.isArray(value) ? value.join(', ') : ''
  return typeof value === 'object' ? '' : String(value)
}

/** The value of a field; undefined if it is empty. A text that is no number stays a text, so that the agent rejects it. */
function typed(field: HTMLElement): unknown {
  const text = inputOf(field)?.value.trim() ?? ''
  const { kind, path } = field.dataset
  if (text === '') return path === 'deviceId' ? UNNAMED : undefined
  if (kind === 'choice' || kind === 'device') return JSON.parse(text) as unknown
  if (kind === 'number') return numberOf(text)
  return kind === 'numbers' ? text.split(/[\s,;]+/).map(numberOf) : text
}

function numberOf(text: string): number | string {
  const value = Number(text.replace(',', '.'))
  return Number.isFinite(value) ? value : text
}

let marked = 0

function mark(fields: readonly HTMLElement[], faults: readonly FieldFault[]): { labels: string[]; rest: string[] } {
  unmark(fields)
  const labels: string[] = []
  const rest: string[] = []
  let first: HTMLElement | undefined
  for (const { path, message } of faults) {
    const setting = path.replace(/^entry\./, '')
    const field = fieldOf(fields, setting)
    const input = field && inputOf(field)
    if (!field || !input) {
      rest.push(`${setting}: ${message}`)
      continue
    }
    labels.push(field.dataset['label'] ?? setting)
    markField(field, input, faultText({ value: input.value, limits: limitsOf(field) }, message, texts))
    // Drivers explain faults in English only, so that other languages show the reason as a technical detail.
    if (texts.language !== 'en') rest.push(`${field.dataset['label'] ?? setting}: ${message}`)
    for (let outer = field.closest('details'); outer; outer = outer.parentElement?.closest('details') ?? null)
      outer.open = true
    first ??= input
  }
  first?.focus()
  return { labels: [...new Set(labels)], rest }
}

function unmark(fields: readonly HTMLElement[]): void {
  for (const field of fields) {
    field.querySelector('.field-fault')?.remove()
    for (const name of ['aria-invalid', 'aria-describedby']) inputOf(field)?.removeAttribute(name)
  }
}

/** Shows a fault below its field. */
function markField(field: HTMLElement, input: HTMLElement, text: string): void {
  const place = newElement('span', text, { className: 'field-fault' })
  place.id = `fault-${++marked}`
  field.append(place)
  input.setAttribute('aria-invalid', 'true')
  input.setAttribute('aria-describedby', place.id)
}

/** Allowed numbers of a field. */
function limitsOf({ dataset: { min, max } }: HTMLElement): readonly [number, number] | undefined {
  return min === undefined || max === undefined ? undefined : [Number(min), Number(max)]
}

/** The field of a setting, else the first field inside it, else the field around it (`antennas.inside.0`). */
function fieldOf(fields: readonly HTMLElement[], setting: string): HTMLElement | undefined {
  const at = (isWanted: (path: string) => boolean) => fields.find((field) => isWanted(field.dataset['path'] ?? ''))
  return (
    at((path) => path === setting) ??
    at((path) => path.startsWith(`${setting}.`)) ??
    at((path) => setting.startsWith(`${path}.`))
  )
}

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
  status.textContent = answer.ok ? deviceState(answer.body, texts) : problem(answer.code)
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
    cause?: SearchCause
  }>('POST', '/v1/setup/search', { address })
  if (!answer.ok || !answer.body.found) {
    write('search-status', answer.ok ? searchProblem(answer.body.cause) : refusedSearch(answer.code))
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

/** Why the search found nothing. */
function searchProblem(cause: SearchCause | undefined): string {
  return cause === undefined ? texts.setup.failed : texts.setup.searchCauses[cause]
}

/** Why the agent did not search. `code`: its error code. */
function refusedSearch(code: string): string {
  return code === 'invalid-argument' ? texts.setup.noAddress : problem(code)
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

/** What to say of an error code. Without one the agent, or a proxy before it, did not answer. */
function problem(code: string): string {
  const { what, todo } = texts.requestFailed.unreachable
  return code === '' ? `${what} ${todo}` : (texts.setup.problems[code] ?? texts.setup.failed)
}

/** Registers the device if there is a code, and adds the entry to the configuration, or marks the faults. */
async function addDevice(form: HTMLFormElement): Promise<void> {
  const [code, type, name, button] = [
    form.querySelector<HTMLInputElement>('[data-code]'),
    form.querySelector<HTMLSelectElement>('[data-type]'),
    form.querySelector<HTMLInputElement>('[data-name]'),
    form.querySelector('button'),
  ]
  const fields = forms.get(form)
  const codeField = code?.closest<HTMLElement>('[data-code-field]')
  if (!fields || !code || !codeField || !type || !name || !button) return
  const results = resultsOf(form)
  const entry = fields.entry()
  fields.mark([])
  unmark([codeField])
  if (entry === undefined) return results.show(texts.setup.noEntry)
  // A code is the usual way, so a form with neither asks for it.
  if (code.value.trim() === '' && [undefined, '', UNNAMED].includes(entry['deviceId'] as string | undefined)) {
    markField(codeField, code, problem('code_missing'))
    code.focus()
    return results.show(problem('code_missing'))
  }
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
    if (answer.code.startsWith('setup_code_')) {
      markField(codeField, code, problem(answer.code))
      code.focus()
    }
    // The settings are right; only the code is missing.
    const { labels, rest } = fields.mark(answer.code === 'setup_code_needed' ? [] : answer.details)
    const { correct, codeUnused } = texts.setup
    const text = labels.length > 0 ? `${correct(labels.join(', '))} ${codeUnused}` : problem(answer.code)
    return results.show(text, labels.length === 0 ? answer.error : rest.join('; '))
  }
  // The server renders the page again, with the new device and its tests.
  const url = new URL(location.href)
  url.searchParams.set('added', answer.body.deviceId)
  location.assign(url)
}

/** Saves the changed entry of a device, or removes the device. */
async function changeDevice(form: HTMLFormElement, isRemoved: boolean): Promise<void> {
  const fields = forms.get(form)
  const results = resultsOf(form)
  const entry = fields?.entry()
  const called = form.querySelector<HTMLInputElement>('[data-name]')?.value.trim()
  fields?.mark([])
  if (!fields || (entry === undefined && !isRemoved)) return results.show(texts.setup.noEntry)
  results.show(texts.busy)
  const answer = await call('POST', '/v1/setup/change', {
    deviceId: form.dataset['change'],
    ...(!isRemoved && { entry, ...(called !== undefined && called !== '' && { name: called }) }),
  })
  if (answer.ok) {
    const url = new URL(location.href)
    url.search = ''
    url.searchParams.set('changed', form.dataset['change'] ?? '')
    return location.assign(url)
  }
  const { labels, rest } = fields.mark(answer.code === 'setup_code_needed' ? [] : answer.details)
  // This form has no code.
  const code = answer.code === 'invalid-argument' ? 'entry_fault' : answer.code
  const text = labels.length > 0 ? texts.setup.correct(labels.join(', ')) : problem(code)
  results.show(text, labels.length === 0 ? answer.error : rest.join('; '))
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
  results.show(started.ok ? texts.setup.walkHint(seconds) : problem(started.code), started.ok ? '' : started.error)
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
  if (!answer.ok) return results.show(problem(answer.code), answer.error)
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
for (const form of document.querySelectorAll<HTMLFormElement>('[data-change]')) {
  forms.set(form, settingsForm(form))
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void changeDevice(form, false)
  })
  form.querySelector('[data-remove]')?.addEventListener('click', () => {
    if (confirm(texts.setup.removeQuestion)) void changeDevice(form, true)
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
