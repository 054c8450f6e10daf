import type { Texts } from '../texts/texts.ts'
import { signOut, whoIsHere } from './api.ts'
import type { Place } from './page-context.ts'
import { after } from './platform.ts'
import { slot, writeOrHide } from './elements.ts'

/** Who stands behind what is asked at this device. The agent keeps the session; the page knows the name only. */
export interface Operator {
  readonly isHere: boolean
  /** Signed in, or out, at the device: here, with a badge, or at another page. */
  heard(name: string | null): void
  /** After the agent was away it may know nobody any more. */
  lookAgain(): Promise<void>
}

/** The agent counts the idle time; a session that has ended is not shown for longer. */
const LOOK_MS = 30_000

/** Who is signed in, as the page shows it. */
export function openOperator({ deviceId, texts }: Place, startName: string | null): Operator {
  let name = startName
  let callOff: () => void = () => undefined

  let news = 0

  function lookLater(): void {
    callOff()
    if (name !== null) callOff = after(LOOK_MS, () => void lookAgain())
  }

  async function lookAgain(): Promise<void> {
    const before = news
    const answer = await whoIsHere(deviceId)
    // Somebody has signed in, or out, since it was asked.
    if (news !== before) return
    if (answer.ok && answer.body.name !== name) return heard(answer.body.name)
    lookLater()
  }

  function heard(next: string | null): void {
    news++
    name = next
    draw(texts, name)
    lookLater()
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
    heard,
    lookAgain,
  }
}

function draw(texts: Texts, name: string | null): void {
  writeOrHide('operator-name', name === null ? '' : texts.signedInAs(name))
  slot('sign-in').hidden = name !== null
  slot('sign-out').hidden = name === null
}
