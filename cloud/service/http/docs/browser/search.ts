/**
 * Full-text search over guide, operations, fields, schemas and error codes of this page. The page loads the library
 * MiniSearch, which sets the global `MiniSearch`.
 */

interface Entry {
  id: number
  kind: string
  title: string
  /** Words of the title, so that "store" finds `storeId`. */
  parts: string
  text: string
}

interface Index {
  addAll(entries: readonly Entry[]): void
  search(query: string, options: object): { id: number }[]
}

declare const MiniSearch: new (options: object) => Index

const RESULT_LIMIT = 30
const SNIPPET_LENGTH = 110
/** Factors for ranking: operations and codes come before fields, because many fields have the same name. */
const KIND_WEIGHT: Record<string, number> = { operation: 4, code: 4, guide: 3, schema: 2, field: 1 }

const entries: Entry[] = []
const targets: HTMLElement[] = []

function add(kind: string, target: HTMLElement, title: string, text: string): void {
  const words = title.replaceAll(/([a-z])([A-Z])/g, '$1 $2').split(/[\s_.]+/)
  // Also adds every ending of the title without spaces, such as "ProtectedItem" of `verifyProtectedItem`.
  const parts = [...words, ...words.map((_, i) => words.slice(i).join(''))].join(' ')
  entries.push({ id: entries.length, kind, title, parts, text: text.replaceAll(/\s+/g, ' ').trim() })
  targets.push(target)
}

function collect(): void {
  const every = <T extends HTMLElement>(selector: string, root: ParentNode = document) => [
    ...root.querySelectorAll<T>(selector),
  ]
  for (const heading of every('.guide h3')) {
    let text = ''
    for (let next = heading.nextElementSibling; next?.tagName === 'P'; next = next.nextElementSibling)
      text += ` ${next.textContent}`
    add('guide', heading, heading.textContent ?? '', text)
  }
  for (const article of every('main article')) {
    const isOperation = article.dataset['path'] !== undefined
    const name = article.querySelector('h3')?.textContent?.trim() ?? ''
    const text = every('.text > p', article)
    add(isOperation ? 'operation' : 'schema', article, name, text.map((p) => p.textContent).join(' '))
    for (const field of every('.fields > li', article)) {
      const code = field.querySelector(':scope > code')?.textContent
      if (code) add('field', field, `${name}.${code}`, field.querySelector(':scope > div')?.textContent ?? '')
    }
  }
  for (const code of every('.codes > li'))
    add('code', code, code.querySelector('code')?.textContent ?? '', code.querySelector('span')?.textContent ?? '')
}

let index: Index | undefined

/** Builds the index at the first search, so that loading the page stays fast. */
function openIndex(): Index {
  if (index) return index
  collect()
  index = new MiniSearch({ fields: ['title', 'parts', 'text'], storeFields: [] })
  index.addAll(entries)
  return index
}

function find(query: string): Entry[] {
  const found = openIndex().search(query, {
    prefix: true,
    fuzzy: (term: string) => (term.length > 4 ? 0.2 : false),
    combineWith: 'AND',
    boost: { title: 4, parts: 3 },
    boostDocument: (id: number) => KIND_WEIGHT[entries[id]?.kind ?? ''] ?? 1,
  })
  return found.slice(0, RESULT_LIMIT).flatMap(({ id }) => entries[id] ?? [])
}

/** Opens the collapsed sections around the target, scrolls to it and sets the address bar. */
function show(target: HTMLElement): void {
  for (let parent = target.parentElement; parent; parent = parent.parentElement)
    if (parent instanceof HTMLDetailsElement) parent.open = true
  const anchor = target.id === '' ? target.closest('[id]') : target
  if (anchor) history.pushState(null, '', `#${anchor.id}`)
  target.scrollIntoView({ block: 'start' })
  target.classList.add('found')
  setTimeout(() => target.classList.remove('found'), 3_000)
}

function resultItem(entry: Entry, menu: HTMLElement): HTMLLIElement {
  const item = document.createElement('li')
  const link = document.createElement('a')
  const kind = document.createElement('small')
  const snippet = document.createElement('span')
  const target = targets[entry.id]
  link.href = `#${target?.id || (target?.closest('[id]')?.id ?? '')}`
  link.textContent = entry.title
  kind.textContent = entry.kind
  snippet.textContent =
    entry.text.length > SNIPPET_LENGTH ? `${entry.text.slice(0, SNIPPET_LENGTH).trimEnd()} …` : entry.text
  link.append(kind, snippet)
  link.addEventListener('click', (event) => {
    event.preventDefault()
    if (menu.matches(':popover-open')) menu.hidePopover()
    if (target) show(target)
  })
  item.append(link)
  return item
}

function startSearch(): void {
  const menu = document.getElementById('menu')
  const input = document.getElementById('search')
  const list = document.getElementById('results')
  const count = document.getElementById('result-count')
  const contents = document.getElementById('contents')
  if (!menu || !(input instanceof HTMLInputElement) || !list || !count || !contents) return
  input.hidden = false
  input.addEventListener('input', () => {
    const query = input.value.trim()
    const found = query.length < 2 ? [] : find(query)
    list.replaceChildren(...found.map((entry) => resultItem(entry, menu)))
    list.hidden = query.length < 2
    contents.hidden = query.length >= 2
    count.textContent = query.length < 2 ? '' : found.length === 0 ? 'Nothing found.' : `${found.length} results`
  })
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') list.querySelector('a')?.click()
    if (event.key !== 'Escape') return
    input.value = ''
    input.dispatchEvent(new Event('input'))
  })
  document.addEventListener('keydown', (event) => {
    const isTyping = event.target instanceof Element && event.target.matches('input, textarea, select')
    if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    if (menu.popover !== null && !menu.matches(':popover-open') && getComputedStyle(menu).display === 'none')
      menu.showPopover()
    input.focus()
  })
}

startSearch()

export {}
