import type { Child } from 'hono/jsx'
import type { PageContext } from '../frame/page.ts'
import { Card } from './card.tsx'
import { Notice } from './notice.tsx'

/** JSON for people who know programs. */
export function Json({ text }: { text: string }) {
  return (
    <pre class="json" tabindex={0}>
      <code>{text}</code>
    </pre>
  )
}

/** A secret that is shown once, with a button that copies it. `back`: text of the link to the page. */
export function SecretOnce({
  at,
  title,
  secret,
  back,
  children,
}: {
  at: PageContext
  title: string
  secret: string
  back: string
  children?: Child
}) {
  const t = at.texts.developers
  return (
    <Card title={title}>
      <div class="stack">
        <Notice tone="warn" title={t.shownOnce}>
          {children}
        </Notice>
        <p>
          <code class="secret">{secret}</code>
        </p>
        <div class="form-foot">
          <button type="button" class="button main needs-script" data-copy={secret} data-done={t.copied}>
            {t.copy}
          </button>
          <a class="button" href={at.path}>
            {back}
          </a>
        </div>
      </div>
    </Card>
  )
}
