import { listOperators, signIn, type OperatorName } from './api.ts'
import type { Operator } from './operator.ts'
import type { Place } from './place.ts'
import { after } from './platform.ts'
import { made, slot, write } from './slots.ts'

/** The dialog in which somebody says who they are: name, then PIN. */
export interface SignIn {
  /** `then` runs once somebody has signed in. */
  open(then?: () => void): void
  /** The agent is being asked: it tells everybody who has signed in before it answers this page. */
  readonly isAsking: boolean
  close(): void
}

/** A dialog that somebody walked away from goes away too. */
const LEFT_ALONE_MS = 60_000
const SHORTEST_PIN = 4

/** The dialogue for name and PIN. */
export function openSignIn({ deviceId, texts }: Place, operator: Operator): SignIn {
  const dialog = slot<HTMLDialogElement>('sign-in-dialog')
  const pin = slot<HTMLInputElement>('pin')
  const confirm = slot<HTMLButtonElement>('pin-confirm')
  let chosen: OperatorName | undefined
  let isAsking = false
  let lockedSeconds = 0
  let afterwards: (() => void) | undefined
  let callOff: () => void = () => undefined

  function step(to: 'names' | 'pin', title: string): void {
    write('sign-in-title', title)
    write('sign-in-error', '')
    slot('names-step').hidden = to !== 'names'
    slot('pin-step').hidden = to !== 'pin'
    pin.value = ''
  }

  function stayAwake(): void {
    callOff()
    callOff = after(LEFT_ALONE_MS, () => dialog.close())
  }

  async function askWho(): Promise<void> {
    step('names', texts.whoAreYou)
    const answer = await listOperators()
    if (!answer.ok) return write('sign-in-error', texts.requestFailed[answer.fault].what)
    const { operators } = answer.body
    if (operators.length === 0) write('sign-in-error', texts.noOperators)
    slot('names').replaceChildren(...operators.map(nameButton))
    slot('names').querySelector('button')?.focus()
  }

  function nameButton(who: OperatorName): HTMLElement {
    const button = document.createElement('button')
    button.type = 'button'
    button.append(made('span', who.name))
    if (!who.hasPin) button.append(made('span', texts.badgeOnly, { className: 'soft' }))
    button.disabled = !who.hasPin
    button.addEventListener('click', () => {
      chosen = who
      step('pin', texts.pinOf(who.name))
      pin.focus()
    })
    const item = document.createElement('li')
    item.append(button)
    return item
  }

  async function send(): Promise<void> {
    if (!chosen || isAsking || lockedSeconds > 0) return
    const typed = pin.value
    pin.value = ''
    if (typed.length < SHORTEST_PIN) return write('sign-in-error', texts.pinTooShort)
    isAsking = true
    const answer = await signIn(deviceId, chosen.operatorId, typed)
    isAsking = false
    // Signed in for nobody to see is worse than not signed in.
    if (answer.ok && !dialog.open) return
    if (answer.ok) {
      const then = afterwards
      dialog.close()
      operator.heard(answer.body.name)
      return then?.()
    }
    if (answer.status === 429) return lock(answer.retryAfterSeconds)
    write('sign-in-error', answer.status === 401 ? texts.wrongPin : failureText(answer.code))
    pin.focus()
  }

  function failureText(code: string): string {
    const { what, todo } = texts.notUnderstood.no_store_key
    return code === 'no_store_key' ? `${what} ${todo}` : texts.signInFailed
  }

  function lock(seconds: number): void {
    lockedSeconds = seconds
    confirm.disabled = seconds > 0
    write('sign-in-error', seconds > 0 ? texts.lockedFor(seconds) : '')
    if (seconds > 0) after(1_000, () => lock(lockedSeconds - 1))
  }

  dialog.addEventListener('pointerdown', stayAwake)
  dialog.addEventListener('keydown', stayAwake)
  dialog.addEventListener('close', () => {
    callOff()
    pin.value = ''
    afterwards = undefined
  })
  // Digits only, whatever the keyboard says.
  pin.addEventListener('input', () => (pin.value = pin.value.replace(/\D/g, '')))
  for (const key of dialog.querySelectorAll<HTMLElement>('[data-digit]')) {
    key.addEventListener(
      'click',
      () => (pin.value = (pin.value + (key.dataset['digit'] ?? '')).slice(0, pin.maxLength)),
    )
  }
  slot('pin-delete').addEventListener('click', () => (pin.value = pin.value.slice(0, -1)))
  slot('pin-back').addEventListener('click', () => void askWho())
  slot('sign-in-close').addEventListener('click', () => dialog.close())
  slot('pin-step').addEventListener('submit', (event) => {
    event.preventDefault()
    void send()
  })

  return {
    open(then) {
      afterwards = then
      if (!dialog.open) dialog.showModal()
      stayAwake()
      void askWho()
    },
    get isAsking() {
      return isAsking
    },
    close: () => dialog.close(),
  }
}
