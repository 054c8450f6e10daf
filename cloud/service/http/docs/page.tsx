import { raw } from 'hono/html'
import { fieldsOf } from '../../description/fields.ts'
import type { GuideSection } from '../../description/guide.ts'
import { API_VERSION, type Description } from '../../description/openapi.ts'
import { CodeLists } from './code-lists.tsx'
import { FieldList, schemaId } from './field-list.tsx'
import { exampleRequests, OperationEntry } from './operation-entry.tsx'
import { OWN_IDS } from './own-ids.ts'
import { Prose } from './prose.tsx'
import { STYLE } from './style.ts'
import { TryTemplate } from './try-template.tsx'

interface Parts {
  description: Description
  guide: readonly GuideSection[]
  /** Scripts of the page. The search and the forms that call operations need these scripts. */
  scripts: readonly string[]
}

/** The API reference, generated from the table of operations. */
export function DocsPage({ description, guide, scripts }: Parts) {
  const areas = [...new Set(description.operations.map((o) => o.operation.area))]
  const shared = Object.entries(description.shared)
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>untag API reference</title>
        <meta name="description" content="Every operation of the untag API with its fields, errors and code samples." />
        <link rel="icon" href="/icon.svg" type="image/svg+xml" />
        <style>{raw(STYLE)}</style>
      </head>
      <body>
        <a class="skip" href="#content">
          Skip to the content
        </a>
        <div class="bar">
          <strong>untag API</strong>
          <button type="button" popovertarget="menu">
            Contents
          </button>
        </div>
        <Menu areas={areas} description={description} guide={guide} />
        <main id="content" tabindex={-1}>
          <h1>untag API reference</h1>
          <Lead areas={areas} count={description.operations.length} />
          <section class="guide">
            {guide.map(({ id, title, text }) => (
              <>
                <h3 id={id}>{title}</h3>
                {text.map((paragraph) => (
                  <Prose text={paragraph} />
                ))}
              </>
            ))}
          </section>
          {areas.map((area) => (
            <section>
              <h2 id={areaId(area)}>{titled(area)}</h2>
              {description.operations
                .filter((o) => o.operation.area === area)
                .map((described) => (
                  <OperationEntry described={described} description={description} />
                ))}
            </section>
          ))}
          <section>
            <h2 id="schemas">Shared schemas</h2>
            {shared.map(([name, schema]) => (
              <article id={schemaId(name)}>
                <h3>{name}</h3>
                <FieldList fields={fieldsOf(schema, description.components, false)} bases={[]} mark="optional" />
              </article>
            ))}
          </section>
          <CodeLists />
        </main>
        <TryTemplate />
        <script type="application/json" id="examples">
          {raw(forScript(JSON.stringify(exampleRequests(description))))}
        </script>
        <script type="application/json" id="own-ids">
          {raw(forScript(JSON.stringify(OWN_IDS)))}
        </script>
        {scripts.map((script) => (
          <script>{raw(script)}</script>
        ))}
      </body>
    </html>
  )
}

function Lead({ areas, count }: { areas: readonly string[]; count: number }) {
  return (
    <div class="lead">
      <p>
        Version {API_VERSION}, {count} operations: {areas.join(', ')}.
      </p>
      <ul class="links">
        <li>
          <a href="/openapi.json">OpenAPI 3.0.3</a>
        </li>
        <li>
          <a href="/postman.json">Postman collection</a>
        </li>
        <li>
          <a href="/llms.txt">llms.txt</a>
        </li>
        <li>
          <a href="/.well-known/jwks.json">Keys that verify tokens</a>
        </li>
      </ul>
    </div>
  )
}

interface MenuParts {
  areas: readonly string[]
  description: Description
  guide: readonly GuideSection[]
}

function Menu({ areas, description, guide }: MenuParts) {
  return (
    <nav id="menu" popover="auto" aria-label="Contents">
      <p>
        <a href="#content">
          untag API <span>{API_VERSION}</span>
        </a>
      </p>
      <input
        id="search"
        type="search"
        placeholder="Search (press /)"
        aria-label="Search guide, operations, fields and codes"
        autocomplete="off"
        hidden
      />
      <p id="result-count" role="status"></p>
      <ol id="results" hidden></ol>
      <div id="contents">
        <Contents areas={areas} description={description} guide={guide} />
      </div>
    </nav>
  )
}

function Contents({ areas, description, guide }: MenuParts) {
  return (
    <>
      <b>Guide</b>
      <ul>
        {guide.map(({ id, title }) => (
          <li>
            <a href={`#${id}`}>{title}</a>
          </li>
        ))}
      </ul>
      {areas.map((area) => (
        <div>
          <b>{titled(area)}</b>
          <ul>
            {description.operations
              .filter((o) => o.operation.area === area)
              .map(({ operation }) => (
                <li>
                  <a href={`#${operation.name}`}>{operation.name}</a>
                </li>
              ))}
          </ul>
        </div>
      ))}
      <b>More</b>
      <ul>
        <li>
          <a href="#schemas">Shared schemas</a>
        </li>
        <li>
          <a href="#codes">Codes</a>
        </li>
      </ul>
    </>
  )
}

function titled(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1)
}

function areaId(area: string): string {
  return `area-${area.replaceAll(' ', '-')}`
}

/** Escapes JSON for a script element. */
function forScript(json: string): string {
  return json.replaceAll('<', String.raw`\u003c`)
}
