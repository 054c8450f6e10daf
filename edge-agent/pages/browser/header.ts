import { lostView, statusView } from '../model/status-view.ts'
import type { PageStatus } from '../model/wire.ts'
import { type PageContext, newElement, slot } from './elements.ts'
import { every, now } from './platform.ts'

/** Updates badges and banners, and the elapsed times in them. */
interface Header {
  setStatus(status: PageStatus): void
  /** `sinceMs`: when the agent answered last, wall clock. */
  setLost(isLost: boolean, sinceMs: number): void
  /** True while an operator is signed in, who reads what shoppers need not know. */
  setStaff(isStaff: boolean): void
}

const TICK_MS = 10_000

/** Opens the header of the page. */
export function openHeader({ deviceId, texts }: PageContext): Header {
  let status: PageStatus | undefined
  let isLost = false
  let lostMs = 0
  let isStaff = false
  let shown = ''

  function draw(): void {
    const view = isLost
      ? lostView(texts, lostMs, isStaff)
      : status && statusView(status, deviceId, texts, { nowMs: now(), isStaff })
    if (!view) return
    // Screen readers read changed banners aloud. So this code replaces only banners with a new text.
    const key = JSON.stringify(view)
    if (key === shown) return
    shown = key
    slot('badges').replaceChildren(
      ...view.badges.map(({ tone, text }) => newElement('li', text, { tone, className: 'badge' })),
    )
    const banners = slot('banners')
    if (view.banners.map(({ text }) => text).join() === [...banners.children].map((b) => b.textContent).join()) return
    banners.replaceChildren(
      ...view.banners.map(({ tone, text }) => newElement('p', text, { tone, className: 'banner' })),
    )
  }

  every(TICK_MS, draw)
  return {
    setStatus(next) {
      status = next
      draw()
    },
    setLost(next, sinceMs) {
      isLost = next
      lostMs = sinceMs
      draw()
    },
    setStaff(next) {
      isStaff = next
      draw()
    },
  }
}
