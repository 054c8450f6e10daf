import { raw } from 'hono/html'

/** A paragraph in which `words between backticks` are code. */
export function Prose({ text }: { text: string }) {
  return <p>{text.split('`').map((part, i) => (i % 2 === 1 ? <code>{part}</code> : part))}</p>
}

/** Code as it is. Between tags a quote is a quote: half the page would be their escapes. */
export function Code({ text }: { text: string }) {
  return (
    <pre>
      <code>{raw(text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'))}</code>
    </pre>
  )
}
