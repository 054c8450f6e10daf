import type { FieldFault } from './api.ts'
import { newElement } from './elements.ts'

/**
 *   fields ◀──▶ entry as JSON ─▶ agent, which validates it
 *
 * The fields of one device. The JSON text of the form is the only state: a field changes its part of the text, and a
 * changed text fills in the fields again. So a setting that has no field is never lost.
 */

export type Entry = Record<string, unknown>

export interface SettingsForm {
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
export function settingsForm(form: HTMLFormElement): SettingsForm {
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
  return needed === 'always' || (needed === 'variant' && value[group] === undefined)
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
  for (const field of fields) {
    field.querySelector('.field-fault')?.remove()
    for (const name of ['aria-invalid', 'aria-describedby']) inputOf(field)?.removeAttribute(name)
  }
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
    const place = newElement('span', message, { className: 'field-fault' })
    place.lang = 'en'
    place.id = `fault-${++marked}`
    field.append(place)
    input.setAttribute('aria-invalid', 'true')
    input.setAttribute('aria-describedby', place.id)
    for (let outer = field.closest('details'); outer; outer = outer.parentElement?.closest('details') ?? null)
      outer.open = true
    first ??= input
  }
  first?.focus()
  return { labels: [...new Set(labels)], rest }
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
