/** Service worker of the console: shows push notices about alarms, also when no page is open. Stores nothing. */

/** Texts of the language, which the server puts before this script. */
declare const TEXTS: { readonly titles: Readonly<Record<string, string>>; readonly other: string }

interface Notice {
  readonly reason: string
  readonly storeName: string
  readonly path: string
  readonly tag: string
}

interface Extendable {
  waitUntil(work: Promise<unknown>): void
}
interface OpenedWindow {
  readonly url: string
  focus(): Promise<unknown>
  navigate(url: string): Promise<unknown>
}
/** The parts of ServiceWorkerGlobalScope that this script uses. The types of windows and workers exclude each other. */
interface WorkerScope {
  readonly registration: ServiceWorkerRegistration
  readonly clients: {
    matchAll(options: { type: 'window'; includeUncontrolled: boolean }): Promise<readonly OpenedWindow[]>
    openWindow(url: string): Promise<unknown>
  }
  addEventListener(type: 'push', run: (event: Extendable & { data: { json(): Notice } | null }) => void): void
  addEventListener(type: 'notificationclick', run: (event: Extendable & { notification: Notification }) => void): void
}

const worker = self as unknown as WorkerScope

worker.addEventListener('push', (event) => {
  const notice = event.data?.json()
  if (!notice) return
  const { reason, storeName, path, tag } = notice
  // `renotify` rings again for each alarm, although a newer notice replaces the older one.
  const options = { body: storeName, tag, renotify: true, requireInteraction: true, data: path }
  event.waitUntil(worker.registration.showNotification(TEXTS.titles[reason] ?? TEXTS.other, options))
})

worker.addEventListener('notificationclick', (event) => {
  event.notification.close()
  const path = String(event.notification.data)
  if (path.startsWith('/console/')) event.waitUntil(open(path))
})

/** Shows the page in an open window of the console, else in a new one. */
async function open(path: string): Promise<void> {
  const windows = await worker.clients.matchAll({ type: 'window', includeUncontrolled: true })
  const known = windows.find(({ url }) => new URL(url).pathname.startsWith('/console'))
  if (!known) {
    await worker.clients.openWindow(path)
    return
  }
  await known.focus()
  // A window that this worker does not control cannot be moved.
  await known.navigate(path).catch(() => worker.clients.openWindow(path))
}

export {}
