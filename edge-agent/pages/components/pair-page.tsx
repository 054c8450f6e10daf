import type { Texts } from '../texts/texts.ts'
import { Frame, type FrameProps } from './frame.tsx'

/** In place of every page for a browser that has no credential yet, where all programs of this machine need one. */
export function PairPage({ texts, script }: { texts: Texts; script: FrameProps['script'] }) {
  const { pair } = texts
  return (
    <Frame title="untag" texts={texts} kind="list" script={script}>
      <main>
        <h1>{pair.what}</h1>
        <p>{pair.todo}</p>
        <form data-slot="pair" method="post">
          <label for="credential">{pair.credential}</label>
          <div class="row">
            <input
              id="credential"
              type="password"
              data-slot="credential"
              maxlength={200}
              autocomplete="off"
              autocapitalize="none"
              spellcheck={false}
              required
            />
            <button type="submit">{pair.send}</button>
          </div>
        </form>
        <p role="status" data-slot="pair-told" />
      </main>
    </Frame>
  )
}
