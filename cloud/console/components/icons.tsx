import type { IconName } from '../frame/page.ts'

/** Shapes on a grid of 24, drawn with lines. */
const SHAPES: Readonly<Record<IconName, string>> = {
  today: 'M4 5h16v15H4zM4 10h16M8 3v4M16 3v4M8 14h3M13 14h3',
  alarm: 'M12 3a6 6 0 0 1 6 6c0 6 2 7 2 7H4s2-1 2-7a6 6 0 0 1 6-6zM10 20a2 2 0 0 0 4 0',
  check: 'M5 12.5l4.5 4.5L19 7',
  chat: 'M4 5h16v11H10l-5 4v-4H4z',
  orders: 'M5 8h14l-1 12H6zM9 8V6a3 3 0 0 1 6 0v2',
  stock: 'M4 7l8-4 8 4v10l-8 4-8-4zM4 7l8 4 8-4M12 11v10',
  people:
    'M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20c0-4 3-6 6.5-6s6.5 2 6.5 6M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14.5c2 .8 3.5 2.5 3.5 5.5',
  user: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c0-4.5 3.6-7 8-7s8 2.5 8 7',
  money: 'M3 6h18v12H3zM12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM6 12h.01M18 12h.01',
  device: 'M5 3h6v18H5zM13 3h6v18h-6zM8 7h.01M16 7h.01',
  store: 'M4 9l2-5h12l2 5M5 9v11h14V9M4 9h16M10 20v-6h4v6',
  chart: 'M4 4v16h16M8 16v-4M12 16V8M16 16v-6',
  settings: 'M4 7h10M18 7h2M4 17h2M10 17h10M16 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM8 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4z',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  warning: 'M12 4l9 16H3zM12 10v4M12 17h.01',
  info: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 11v5M12 8h.01',
  down: 'M6 9l6 6 6-6',
  out: 'M10 4H5v16h5M14 8l4 4-4 4M9 12h9',
  language: 'M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18',
  recall: 'M4 9h10a6 6 0 0 1 0 12h-4M9 4L4 9l5 5',
  product: 'M3 12V4h8l10 10-7 7zM7.5 8.5h.01M12 10l4 4',
  offer: 'M6 18L18 6M8 9.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM16 17.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3z',
  gift: 'M4 11h16v9H4zM3 7h18v4H3zM12 7v13M12 7c-5 0-5-4-2.5-4S12 7 12 7s0-4 2.5-4S17 7 12 7',
  shield: 'M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6zM8.5 12l2.5 2.5 4.5-5',
  tag: 'M4 4h8l8 8-8 8-8-8zM8 8h.01',
  key: 'M8 19a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM11 12l8-8M16 7l3 3M14 9l2 2',
  hook: 'M12 4a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM12 8v9a4 4 0 0 1-8 0l3 2M12 14h8',
  code: 'M8 7l-5 5 5 5M16 7l5 5-5 5M13 5l-2 14',
  history: 'M4 12a8 8 0 1 0 3-6.2M4 4v4h4M12 8v4l3 2',
}

/** An icon beside a text. It says nothing by itself. */
export function Icon({ name, size = 20 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      aria-hidden="true"
      fill="none"
      stroke="currentColor"
      stroke-width="1.8"
      stroke-linecap="round"
      stroke-linejoin="round"
    >
      <path d={SHAPES[name]} />
    </svg>
  )
}
