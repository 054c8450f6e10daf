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
  key: HTMLInputElement
  once: HTMLInputElement
  request: HTMLTextAreaElement
  file: HTMLInputElement
  refused: HTMLElement
  output: HTMLOutputElement
}

function partsOf(form: HTMLFormElement): Parts {
  const field = (name: string) => form.elements.namedItem(name) as HTMLInputElement
  return {
    form,
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

function startTrying(): void {
  const template = document.getElementById('try')
  const examples = JSON.parse(document.getElementById('examples')?.textContent ?? '{}') as Record<string, unknown>
  if (!(template instanceof HTMLTemplateElement)) return
  for (const article of all<HTMLElement>('article[data-path]')) {
    const samples = all<HTMLElement>('.samples', article)[0]
    const open = element('button', 'Try it', 'try')
    open.type = 'button'
    open.setAttribute('aria-label', `Try it: ${article.id}`)
    samples?.append(open)
    open.addEventListener('click', () => {
      const form = (template.content.cloneNode(true) as DocumentFragment).firstElementChild as HTMLFormElement
      open.hidden = true
      open.after(form)
      fill(article, partsOf(form), examples[article.id])
      all<HTMLButtonElement>('.close', form)[0]?.addEventListener('click', () => {
        form.remove()
        open.hidden = false
        open.focus()
      })
    })
  }
}

function fill(article: HTMLElement, parts: Parts, example: unknown): void {
  const { form, key, once, request, file, refused } = parts
  const changes = article.dataset['changes'] !== undefined
  key.value = sessionStorage.getItem(KEY_NAME) ?? ''
  once.value = changes ? freshKey() : ''
  hideLabel(once, !changes)
  hideLabel(file, article.dataset['file'] === undefined)
  prefill(request, JSON.stringify(example ?? {}, null, 2))
  void useOwnStore(parts)
  key.addEventListener('input', () => {
    remember(key, refused)
    void useOwnStore(parts)
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

/** The first store of each key that was used. A key without a readable store has no entry. */
const storeOfKey = new Map<string, string>()

/** Puts a text into the field that the person has not changed yet. */
function prefill(request: HTMLTextAreaElement, text: string): void {
  request.defaultValue = text
  request.value = text
}

/** Replaces the example store by the first store of the key, unless the person has changed the request. */
async function useOwnStore({ key, request }: Parts): Promise<void> {
  const used = key.value.trim()
  if (!TEST_KEY.test(used) || !/"storeIds?"/.test(request.value)) return
  const storeId = storeOfKey.get(used) ?? (await fetchFirstStore(used))
  if (storeId === undefined) return
  storeOfKey.set(used, storeId)
  if (request.value !== request.defaultValue) return
  const replaced: unknown = JSON.parse(request.value, (name, value: unknown) => {
    if (name === 'storeId' && typeof value === 'string') return storeId
    return name === 'storeIds' && Array.isArray(value) ? [storeId] : value
  })
  prefill(request, JSON.stringify(replaced, null, 2))
}

/** Undefined if the key may not list stores, or no answer arrives. */
async function fetchFirstStore(key: string): Promise<string | undefined> {
  const path = document.getElementById('fetchStores')?.dataset['path']
  if (path === undefined) return undefined
  try {
    const response = await fetch(path, {
      method: 'POST',
      credentials: 'omit',
      cache: 'no-store',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ limit: 1 }),
      signal: AbortSignal.timeout(SENDING_LIMIT_MS),
    })
    const { stores = [] } = (await response.json()) as { stores?: { storeId: string }[] }
    return stores[0]?.storeId
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
  await useOwnStore(parts)
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
