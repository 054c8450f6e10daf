import { listOperators, signIn, type OperatorName } from './api.ts'
import type { Operator } from './operator.ts'
import { type PageContext, newElement, slot, write } from './elements.ts'
import { after } from './platform.ts'

/** The dialog closes after this time without input, ms. */
const CLOSE_AFTER_MS = 60_000
const SHORTEST_PIN = 4
/** Time after which the dialog asks again for the names that it did not get, ms. */
const ASK_AGAIN_MS = 2_000

/** The dialog in which an operator signs in: name, then PIN. */
export class SignIn {
  readonly #context: PageContext
  readonly #operator: Operator
  readonly #dialog = slot<HTMLDialogElement>('sign-in-dialog')
  readonly #pin = slot<HTMLInputElement>('pin')
  readonly #confirm = slot<HTMLButtonElement>('pin-confirm')
  #chosen: OperatorName | undefined
  #isWaiting = false
  #lockedSeconds = 0
  #afterwards: (() => void) | undefined
  #cancel: () => void = () => undefined
  #cancelAsking: () => void = () => undefined

  constructor(context: PageContext, operator: Operator) {
    this.#context = context
    this.#operator = operator
    this.#listenToDialog()
    this.#listenToKeys()
    slot('sign-in').addEventListener('click', () => this.open())
    slot('pin-back').addEventListener('click', () => this.#showNames())
    slot('sign-in-close').addEventListener('click', () => this.close())
    slot('pin-step').addEventListener('submit', (event) => {
      event.preventDefault()
      void this.#send()
    })
  }

  /** `then` runs after an operator has signed in. */
  open(then?: () => void): void {
    this.#afterwards = then
    if (!this.#dialog.open) this.#dialog.showModal()
    this.#restartTimer()
    this.#showNames()
  }

  /**
   * True while the agent checks the PIN. During this time the sign-in event must not close the dialog: the agent sends
   * this event before its answer.
   */
  get isWaiting(): boolean {
    return this.#isWaiting
  }

  close(): void {
    this.#dialog.close()
  }

  #listenToDialog(): void {
    this.#dialog.addEventListener('pointerdown', () => this.#restartTimer())
    this.#dialog.addEventListener('keydown', () => this.#restartTimer())
    this.#dialog.addEventListener('close', () => {
      this.#cancel()
      this.#cancelAsking()
      this.#pin.value = ''
      this.#afterwards = undefined
    })
  }

  #listenToKeys(): void {
    const pin = this.#pin
    // Removes all characters except digits.
    pin.addEventListener('input', () => (pin.value = pin.value.replace(/\D/g, '')))
    for (const key of this.#dialog.querySelectorAll<HTMLElement>('[data-digit]')) {
      key.addEventListener(
        'click',
        () => (pin.value = (pin.value + (key.dataset['digit'] ?? '')).slice(0, pin.maxLength)),
      )
    }
    slot('pin-delete').addEventListener('click', () => (pin.value = pin.value.slice(0, -1)))
  }

  #step(to: 'names' | 'pin', title: string): void {
    write('sign-in-title', title)
    write('sign-in-error', '')
    slot('names-step').hidden = to !== 'names'
    slot('pin-step').hidden = to !== 'pin'
    this.#pin.value = ''
  }

  #restartTimer(): void {
    this.#cancel()
    this.#cancel = after(CLOSE_AFTER_MS, () => this.close())
  }

  #showNames(): void {
    this.#step('names', this.#context.texts.whoAreYou)
    void this.#loadNames()
  }

  async #loadNames(): Promise<void> {
    const { texts } = this.#context
    this.#cancelAsking()
    const answer = await listOperators()
    if (!this.#dialog.open || slot('names-step').hidden) return
    if (!answer.ok) {
      this.#cancelAsking = after(ASK_AGAIN_MS, () => void this.#loadNames())
      return write('sign-in-error', texts.requestFailed[answer.fault].what)
    }
    const { operators } = answer.body
    write('sign-in-error', operators.length === 0 ? texts.noOperators : '')
    slot('names').replaceChildren(...operators.map((who) => this.#nameButton(who)))
    slot('names').querySelector('button')?.focus()
  }

  #nameButton(who: OperatorName): HTMLElement {
    const { texts } = this.#context
    const button = document.createElement('button')
    button.type = 'button'
    button.append(newElement('span', who.name))
    if (!who.hasPin) button.append(newElement('span', texts.badgeOnly, { className: 'soft' }))
    button.disabled = !who.hasPin
    button.addEventListener('click', () => {
      this.#chosen = who
      this.#step('pin', texts.pinOf(who.name))
      this.#pin.focus()
    })
    const item = document.createElement('li')
    item.append(button)
    return item
  }

  async #send(): Promise<void> {
    const { deviceId, texts } = this.#context
    if (!this.#chosen || this.#isWaiting || this.#lockedSeconds > 0) return
    const typed = this.#pin.value
    this.#pin.value = ''
    if (typed.length < SHORTEST_PIN) return write('sign-in-error', texts.pinTooShort)
    this.#isWaiting = true
    const answer = await signIn(deviceId, this.#chosen.operatorId, typed)
    this.#isWaiting = false
    // If the user closed the dialog during the request, the page does not show the sign-in.
    if (answer.ok && !this.#dialog.open) return
    if (answer.ok) {
      const then = this.#afterwards
      this.close()
      this.#operator.setName(answer.body.name)
      return then?.()
    }
    if (answer.status === 429) return this.#lock(answer.retryAfterSeconds)
    write('sign-in-error', answer.status === 401 ? texts.wrongPin : this.#failureText(answer.code))
    this.#pin.focus()
  }

  #failureText(code: string): string {
    const { texts } = this.#context
    const { what, todo } = texts.notUnderstood.no_store_key
    return code === 'no_store_key' ? `${what} ${todo}` : texts.signInFailed
  }

  #lock(seconds: number): void {
    this.#lockedSeconds = seconds
    this.#confirm.disabled = seconds > 0
    write('sign-in-error', seconds > 0 ? this.#context.texts.lockedFor(seconds) : '')
    if (seconds > 0) after(1_000, () => this.#lock(this.#lockedSeconds - 1))
  }
}
