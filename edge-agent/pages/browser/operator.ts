import type { Texts } from '../texts/texts.ts'
import { signOut, whoIsHere } from './api.ts'
import type { Place } from './place.ts'
import { after } from './platform.ts'
import { slot, writeOrHide } from './slots.ts'

/** Who stands behind what is asked at this device. The agent keeps the session; the page knows the name only. */
export interface Operator {
  readonly isHere: boolean
  /** Signed in, or out, at the device: here, with a badge, or at another page. */
  heard(name: string | null): void
  /** Something was asked for: the agent counts its idle time anew. */
  used(): void
  /** After the agent was away it may know nobody any more. */
  lookAgain(): Promise<void>
}

/** A session ends after as long (contracts §6). */
const IDLE_SECONDS = 15 * 60

/** Who is signed in, as the page shows it. */
export function openOperator({ deviceId, texts }: Place, startName: string | null): Operator {
  let name = startName
  let callOff: () => void = () => undefined

  function used(): void {
    callOff()
    if (name !== null) callOff = after(IDLE_SECONDS * 1_000, leave)
  }

  function heard(next: string | null): void {
    name = next
    draw(texts, name)
    used()
  }

  function leave(): void {
    void signOut(deviceId)
    heard(null)
  }

  slot('sign-out').addEventListener('click', leave)
  heard(startName)

  return {
    get isHere() {
      return name !== null
    },
    used,
    heard,
    async lookAgain() {
      const answer = await whoIsHere(deviceId)
      if (answer.ok) heard(answer.body.name)
    },
  }
}

function draw(texts: Texts, name: string | null): void {
  writeOrHide('operator-name', name === null ? '' : texts.signedInAs(name))
  slot('sign-in').hidden = name !== null
  slot('sign-out').hidden = name === null
}
