/** A paragraph in which `words between backticks` are code. */
export function Prose({ text }: { text: string }) {
  return <p>{text.split('`').map((part, i) => (i % 2 === 1 ? <code>{part}</code> : part))}</p>
}
