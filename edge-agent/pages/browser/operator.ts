import type { Texts } from '../texts/texts.ts'
import { signOut, signedInOperator } from './api.ts'
import { type PageContext, slot, writeOrHide } from './elements.ts'
import { after } from './platform.ts'

/** The operator at this device. The agent stores the session; the page has only the name. */
export interface Operator {
  readonly isSignedIn: boolean
  /**
   * Shows the operator; null if no operator is signed in. A badge or another page may also have changed the operator.
   */
  setName(name: string | null): void
  /** Asks the agent again which operator is signed in. Call it when the connection to the agent is back. */
  refresh(): Promise<void>
}

/**
 * Interval at which the page asks the agent which operator is signed in, ms. After the agent has ended a session,
 * the page shows the operator for at most this time.
 */
const REFRESH_MS = 30_000

/** Starts to show who is signed in as operator. */
export function openOperator(
  { deviceId, texts }: PageContext,
  startName: string | null,
  onChange: (isSignedIn: boolean) => void,
): Operator {
  let name = startName
  let cancel: () => void = () => undefined

  let changes = 0

  function refreshLater(): void {
    cancel()
    if (name !== null) cancel = after(REFRESH_MS, () => void refresh())
  }

  async function refresh(): Promise<void> {
    const before = changes
    const answer = await signedInOperator(deviceId)
    // Ignores the answer if an operator signed in or out during the request.
    if (changes !== before) return
    if (answer.ok && answer.body.name !== name) return setName(answer.body.name)
    refreshLater()
  }

  function setName(next: string | null): void {
    changes++
    name = next
    draw(texts, name)
    onChange(name !== null)
    refreshLater()
  }

  function leave(): void {
    void signOut(deviceId)
    setName(null)
  }

  slot('sign-out').addEventListener('click', leave)
  setName(startName)

  return {
    get isSignedIn() {
      return name !== null
    },
    setName,
    refresh,
  }
}

function draw(texts: Texts, name: string | null): void {
  writeOrHide('operator-name', name === null ? '' : texts.signedInAs(name))
  slot('sign-in').hidden = name !== null
  slot('sign-out').hidden = name === null
}
