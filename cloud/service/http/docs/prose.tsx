import { raw } from 'hono/html'

/** Text in which parts between backticks are code. */
export function Inline({ text }: { text: string }) {
  return <>{text.split('`').map((part, i) => (i % 2 === 1 ? <code>{part}</code> : part))}</>
}

/** A paragraph of text in which parts between backticks are code. */
export function Prose({ text }: { text: string }) {
  return (
    <p>
      <Inline text={text} />
    </p>
  )
}

/** A code block. Only `&`, `<` and `>` are escaped, because escaped quotes would double the size of the page. */
export function Code({ text }: { text: string }) {
  return (
    <pre>
      <code>{raw(text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'))}</code>
    </pre>
  )
}
