import { Frame, type FrameProps, type Localization } from './frame.tsx'

interface PairPageProps {
  localization: Localization
  /** Command that prints a one-time link on the agent's machine. */
  command: string
  script: FrameProps['script']
}

/** Page that an unpaired browser gets instead of the requested page. One-time links open this page, too. */
export function PairPage({ localization, command, script }: PairPageProps) {
  const { pair } = localization.texts
  return (
    <Frame title={`${pair.title} · untag`} localization={localization} kind="list" script={script}>
      <main>
        <h1>{pair.what}</h1>
        <ol class="steps">
          <li>
            <p>{pair.run}</p>
            <pre tabindex={0} aria-label={pair.command}>
              {command}
            </pre>
          </li>
          <li>
            <p>{pair.open}</p>
          </li>
        </ol>
        <form data-slot="pair" method="post">
          <label for="link">{pair.paste}</label>
          <div class="row">
            <input
              id="link"
              type="password"
              data-slot="link"
              maxlength={300}
              autocomplete="off"
              autocapitalize="none"
              spellcheck={false}
              required
            />
            <button type="submit">{pair.send}</button>
          </div>
        </form>
        <p role="status" data-slot="pair-status" />
        <p class="soft">{pair.programs}</p>
      </main>
    </Frame>
  )
}
