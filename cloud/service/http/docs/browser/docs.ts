/**
 * Script of the reference page: contents, copy buttons, and forms that call operations with a test key. The script is
 * one file, so that the CSP can name its hash.
 */

const KEY_NAME = 'untag-test-key'
const TEST_KEY = /^untag_test_[a-z]{2}_[A-Za-z0-9]+$/
const SHOWN_HEADERS = ['x-request-id', 'idempotency-replayed', 'ratelimit', 'retry-after', 'content-type']
const SENDING_LIMIT_MS = 30_000

function all<T extends Element>(selector: string, root: ParentNode = document): T[] {
  return [...root.querySelectorAll<T>(selector)]
}

function element<K extends keyof HTMLElementTagNameMap>(name: K, text = '', className = ''): HTMLElementTagNameMap[K] {
  const made = document.createElement(name)
  made.textContent = text
  if (className !== '') made.className = className
  return made
}

function startMenu(): void {
  const menu = document.getElementById('menu')
  if (!menu) return
  menu.addEventListener('click', (event) => {
    if (event.target instanceof HTMLAnchorElement && menu.matches(':popover-open')) menu.hidePopover()
  })
  markPlace(menu)
}

/** Highlights the visible section in the menu. */
function markPlace(menu: HTMLElement): void {
  const links = new Map(all<HTMLAnchorElement>('li a', menu).map((link) => [link.hash.slice(1), link]))
  const watch = new IntersectionObserver(
    (entries) => {
      const seen = entries.findLast((entry) => entry.isIntersecting)
      const link = seen && links.get(seen.target.id)
      if (!link) return
      for (const other of links.values()) other.removeAttribute('aria-current')
      link.setAttribute('aria-current', 'true')
      const { top, bottom } = link.getBoundingClientRect()
      if (menu.clientHeight > 0 && (top < 0 || bottom > menu.clientHeight))
        menu.scrollTop += top - menu.clientHeight / 2
    },
    { rootMargin: '-5% 0px -85% 0px' },
  )
  for (const id of links.keys()) {
    const target = document.getElementById(id)
    if (target) watch.observe(target)
  }
}

function addCopyButtons(): void {
  for (const pre of all<HTMLPreElement>('.samples pre')) {
    const button = element('button', 'Copy', 'copy')
    button.type = 'button'
    const code = pre.textContent ?? ''
    button.addEventListener('click', () => {
      void navigator.clipboard.writeText(code).then(() => (button.textContent = 'Copied'))
    })
    // Browsers offer the clipboard on secure origins only.
    if ('clipboard' in navigator) pre.after(button)
  }
}

interface Parts {
  form: HTMLFormElement
  /** The example request, with the ids of the reference. */
  example: string
  key: HTMLInputElement
  once: HTMLInputElement
  request: HTMLTextAreaElement
  file: HTMLInputElement
  refused: HTMLElement
  output: HTMLOutputElement
}

function partsOf(form: HTMLFormElement, example: string): Parts {
  const field = (name: string) => form.elements.namedItem(name) as HTMLInputElement
  return {
    form,
    example,
    key: field('key'),
    once: field('once'),
    request: form.elements.namedItem('request') as HTMLTextAreaElement,
    file: field('file'),
    refused: all<HTMLElement>('.refused', form)[0] as HTMLElement,
    output: all<HTMLOutputElement>('output', form)[0] as HTMLOutputElement,
  }
}

function freshKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Error text for a key that must not be sent; undefined if the key may be sent. */
function objection(key: string, isOpen: boolean): string | undefined {
  if (key === '') return isOpen ? undefined : 'Enter a test key first.'
  if (key.includes('_live_'))
    return 'This is a live key: it would change real data. Use a test key here, and replace this one if others could see it.'
  return TEST_KEY.test(key) ? undefined : 'A test key looks like untag_test_sk_…'
}

/** Data that the page contains as JSON. */
function dataOf<T>(id: string): Record<string, T> {
  return JSON.parse(document.getElementById(id)?.textContent ?? '{}') as Record<string, T>
}

function startTrying(): void {
  const template = document.getElementById('try')
  const examples = dataOf<unknown>('examples')
  if (!(template instanceof HTMLTemplateElement)) return
  for (const article of all<HTMLElement>('article[data-try]')) {
    const samples = all<HTMLElement>('.samples', article)[0]
    const open = element('button', 'Try it', 'try')
    open.type = 'button'
    open.setAttribute('aria-label', `Try it: ${article.id}`)
    samples?.append(open)
    open.addEventListener('click', () => {
      const form = (template.content.cloneNode(true) as DocumentFragment).firstElementChild as HTMLFormElement
      open.hidden = true
      open.after(form)
      fill(article, partsOf(form, JSON.stringify(examples[article.id] ?? {}, null, 2)))
      all<HTMLButtonElement>('.close', form)[0]?.addEventListener('click', () => {
        form.remove()
        open.hidden = false
        open.focus()
      })
    })
  }
}

function fill(article: HTMLElement, parts: Parts): void {
  const { form, key, once, request, file, refused } = parts
  const changes = article.dataset['changes'] !== undefined
  key.value = sessionStorage.getItem(KEY_NAME) ?? ''
  once.value = changes ? freshKey() : ''
  hideLabel(once, !changes)
  hideLabel(file, article.dataset['file'] === undefined)
  prefill(request, parts.example)
  void useOwnIds(article, parts)
  key.addEventListener('input', () => {
    remember(key, refused)
    void useOwnIds(article, parts)
  })
  request.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit()
  })
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    void submit(article, parts)
  })
  ;(key.value === '' ? key : request).focus()
}

/** Puts a text into the field that the person has not changed yet. */
function prefill(request: HTMLTextAreaElement, text: string): void {
  request.defaultValue = text
  request.value = text
}

/** Where the page finds ids of the caller, by the prefix of the id. */
interface Source {
  operation: string
  ofStore?: true
  list: string
  id: string
  prefer?: readonly [string, string]
}

const EXAMPLE_ID = /\b([a-z]+)_01KAN[0-9A-Z]+/g
const sources = dataOf<Source>('own-ids')
/** Ids that were found, by key and prefix. */
const ownIds = new Map<string, string>()

/** Replaces the example ids by ids of the key's sandbox, unless the person has changed the request. */
async function useOwnIds(article: HTMLElement, { key, request, example }: Parts): Promise<void> {
  const { dataset } = article
  const used = key.value.trim()
  const named = [...new Set([...example.matchAll(EXAMPLE_ID)].map((match) => match[1] ?? ''))]
  const kinds = named.filter((kind) => kind in sources && (kind === 'st' || dataset['try'] === 'all'))
  if (!TEST_KEY.test(used) || kinds.length === 0 || request.value !== request.defaultValue) return
  // A key that may not list stores may be wrong or incomplete, so the page asks for nothing else.
  const storeId = await findOwnId(used, 'st')
  if (storeId === undefined) return
  await Promise.all(kinds.map((kind) => findOwnId(used, kind, storeId)))
  if (request.value !== request.defaultValue || key.value.trim() !== used) return
  const idFor = (id: string, kind: string) => (kinds.includes(kind) && ownIds.get(`${used} ${kind}`)) || id
  prefill(request, example.replaceAll(EXAMPLE_ID, idFor))
  useInSamples(article, idFor)
}

/** Puts the ids that were found into the samples of the operation, so that they run when they are copied. */
function useInSamples(article: HTMLElement, idFor: (id: string, kind: string) => string): void {
  for (const code of all<HTMLElement>('.samples > details:not(:last-of-type) code', article))
    code.textContent = (code.textContent ?? '').replaceAll(EXAMPLE_ID, idFor)
}

/** Undefined if the key may not list such objects, has none, or no answer arrives. */
async function findOwnId(key: string, kind: string, storeId?: string): Promise<string | undefined> {
  const known = ownIds.get(`${key} ${kind}`)
  const source = sources[kind]
  const path = document.getElementById(source?.operation ?? '')?.dataset['path']
  if (known !== undefined || source === undefined || path === undefined) return known
  try {
    const response = await fetch(path, {
      method: 'POST',
      credentials: 'omit',
      cache: 'no-store',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(source.ofStore ? { storeId } : {}),
      signal: AbortSignal.timeout(SENDING_LIMIT_MS),
    })
    const answer = (await response.json()) as Record<string, Record<string, string>[] | undefined>
    const list = answer[source.list] ?? []
    const [field = '', value] = source.prefer ?? []
    const id = (list.find((object) => object[field] === value) ?? list[0])?.[source.id]
    if (id !== undefined) ownIds.set(`${key} ${kind}`, id)
    return id
  } catch {
    return undefined
  }
}

function hideLabel(input: HTMLElement, isHidden: boolean): void {
  const label = input.closest('label')
  if (label) label.hidden = isHidden
}

/** Stores a test key in the session of this tab. Never stores other keys. */
function remember(key: HTMLInputElement, refused: HTMLElement): void {
  const value = key.value.trim()
  const why = value === '' ? undefined : objection(value, false)
  if (why === undefined) sessionStorage.setItem(KEY_NAME, value)
  else sessionStorage.removeItem(KEY_NAME)
  refuse(refused, value.includes('_live_') ? why : undefined)
}

function refuse(refused: HTMLElement, why: string | undefined): void {
  refused.hidden = why === undefined
  refused.textContent = why ?? ''
}

async function submit(article: HTMLElement, parts: Parts): Promise<void> {
  const key = parts.key.value.trim()
  const why = objection(key, article.dataset['open'] !== undefined)
  refuse(parts.refused, why)
  if (why !== undefined) return parts.key.focus()
  await useOwnIds(article, parts)
  let request: Record<string, unknown>
  try {
    request = JSON.parse(parts.request.value) as Record<string, unknown>
  } catch {
    refuse(parts.refused, 'The request is not valid JSON.')
    return parts.request.focus()
  }
  const send = all<HTMLButtonElement>('.send', parts.form)[0]
  if (send) send.disabled = true
  parts.output.replaceChildren(element('p', 'Sending …'))
  try {
    await show(parts.output, await call(article, parts, key, request))
  } catch (error) {
    parts.output.replaceChildren(
      element('p', `No answer: ${error instanceof Error ? error.message : String(error)}`, 'bad'),
    )
  } finally {
    if (send) send.disabled = false
  }
}

function call(
  { dataset }: HTMLElement,
  { file, once }: Parts,
  key: string,
  request: Record<string, unknown>,
): Promise<Response> {
  const headers: Record<string, string> = key === '' ? {} : { authorization: `Bearer ${key}` }
  const path = dataset['path'] ?? ''
  const options = { credentials: 'omit', cache: 'no-store', signal: AbortSignal.timeout(SENDING_LIMIT_MS) } as const
  if (dataset['method'] === 'GET') {
    const query = new URLSearchParams(Object.entries(request).map(([name, value]) => [name, String(value)]))
    return fetch(`${path}?${query}`, { ...options, headers })
  }
  if (once.value !== '') headers['idempotency-key'] = once.value
  const chosen = dataset['file'] === undefined ? undefined : file.files?.[0]
  if (!chosen)
    return fetch(path, {
      ...options,
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(request),
    })
  const form = new FormData()
  for (const [name, value] of Object.entries(request))
    form.append(name, typeof value === 'string' ? value : JSON.stringify(value))
  form.append(dataset['file'] ?? '', chosen)
  return fetch(path, { ...options, method: 'POST', headers, body: form })
}

async function show(output: HTMLOutputElement, response: Response): Promise<void> {
  const text = await response.text()
  const status = element('p', `${response.status} ${response.statusText}`.trim(), response.ok ? 'good' : 'bad')
  const headers = element('dl')
  for (const name of SHOWN_HEADERS) {
    const value = response.headers.get(name)
    if (value !== null) headers.append(element('dt', name), element('dd', value))
  }
  const body = element('pre', pretty(text))
  body.tabIndex = 0
  body.setAttribute('aria-label', 'Body of the answer')
  body.setAttribute('role', 'region')
  output.replaceChildren(status, headers, body)
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

startMenu()
addCopyButtons()
startTrying()

export {}
