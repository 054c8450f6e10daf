/**
 * Push notices about alarms on this device. The first press asks the browser for permission and subscribes; then the
 * form sends the subscription to the cloud.
 */

function switchPart(): HTMLElement | null {
  return document.querySelector<HTMLElement>('[data-notices]')
}

/** Shows the switch if this browser has push notices. On iPhones only an installed web app has them. */
function showSwitch(hasFailed = false): void {
  const part = switchPart()
  if (!part || !('serviceWorker' in navigator) || !('PushManager' in window)) return
  const state = hasFailed ? 'failed' : Notification.permission === 'denied' ? 'denied' : 'possible'
  for (const each of part.querySelectorAll<HTMLElement>('[data-when]')) each.hidden = each.dataset['when'] !== state
  part.hidden = false
}

/** Subscribes at the push service of the browser, and fills in the form. Returns false without permission. */
async function subscribe(part: HTMLElement, form: HTMLFormElement): Promise<boolean> {
  if ((await Notification.requestPermission()) !== 'granted') return false
  const { notices: applicationServerKey = '', worker = '' } = part.dataset
  await navigator.serviceWorker.register(worker, { scope: '/console/' })
  const { pushManager } = await navigator.serviceWorker.getRegistration('/console/').then(async (registration) => {
    if (!registration) throw new Error('the service worker was not registered')
    await activated(registration)
    return registration
  })
  const options = { userVisibleOnly: true, applicationServerKey }
  const subscription = await pushManager.subscribe(options).catch(async () => {
    // A subscription with another key, such as of another installation at this address, is in the way.
    await (await pushManager.getSubscription())?.unsubscribe()
    return pushManager.subscribe(options)
  })
  const { endpoint = '', keys = {} } = subscription.toJSON()
  const values: Readonly<Record<string, string>> = { endpoint, ...keys }
  for (const name of ['endpoint', 'p256dh', 'auth'])
    form.querySelector<HTMLInputElement>(`[name=${name}]`)?.setAttribute('value', values[name] ?? '')
  return true
}

/** Resolves when the worker of the registration is active. `serviceWorker.ready` is for pages below /console/ only. */
function activated(registration: ServiceWorkerRegistration): Promise<void> {
  const worker = registration.active ?? registration.waiting ?? registration.installing
  if (!worker || worker.state === 'activated') return Promise.resolve()
  return new Promise((resolve) => {
    worker.addEventListener('statechange', () => {
      if (worker.state === 'activated') resolve()
    })
  })
}

// Before htmx sends the form.
document.addEventListener(
  'submit',
  (event) => {
    const part = switchPart()
    const form = event.target
    if (!part || !(form instanceof HTMLFormElement) || !part.contains(form)) return
    if (form.querySelector<HTMLInputElement>('[name=endpoint]')?.value !== '') return
    event.preventDefault()
    event.stopImmediatePropagation()
    void subscribe(part, form)
      .then((isAllowed) => {
        if (isAllowed) form.requestSubmit()
        else showSwitch()
      })
      .catch((error: unknown) => {
        showSwitch(true)
        reportError(error)
      })
  },
  true,
)

document.addEventListener('htmx:afterSettle', () => showSwitch())
showSwitch()

export {}
