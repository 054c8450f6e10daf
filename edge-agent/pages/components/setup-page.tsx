import type { AttachedDevice } from '../../setup/device-discovery.ts'
import { deviceDetail, deviceState, deviceTitle } from '../model/status-view.ts'
import type { PageDevice } from '../model/wire.ts'
import type { Texts } from '../texts/texts.ts'
import { Frame, type FrameProps, type Localization } from './frame.tsx'
import { Technical } from './technical.tsx'

export interface SetupPageProps {
  localization: Localization
  script?: FrameProps['script']
  devices: readonly (PageDevice & { identity?: { description: string; firmwareVersion?: string } })[]
  attached: readonly AttachedDevice[]
  /** Configuration file that the page can add devices to; undefined if there is none. */
  configFile: string | undefined
  /** Warning that the ledger of the agent is untrusted. */
  warning: string | undefined
  /** Why searches for devices failed. */
  notes: readonly string[]
}

/** Page for technicians: configured devices with their states, and attached devices that can be added. */
export function SetupPage({ localization, script, devices, attached, configFile, warning, notes }: SetupPageProps) {
  const { texts } = localization
  const { setup } = texts
  return (
    <Frame title={`${setup.title} · untag`} localization={localization} kind="list" script={script}>
      <main>
        <h1>{setup.title}</h1>
        {warning === undefined ? null : (
          <p class="banner" role="alert" data-tone="bad">
            {warning}
          </p>
        )}
        <Configured texts={texts} devices={devices} />
        <AttachedDevices texts={texts} attached={attached} configFile={configFile} />
        {notes.map((note) => (
          <Technical texts={texts} text={note} />
        ))}
        <LlrpSearch texts={texts} isWritable={configFile !== undefined} />
        <p class="row">
          <a class="button" href="/station">
            {texts.chooseDevice}
          </a>
        </p>
      </main>
    </Frame>
  )
}

/** The devices of the configuration, each with a button that checks it. */
function Configured({ texts, devices }: { texts: Texts } & Pick<SetupPageProps, 'devices'>) {
  const { setup } = texts
  return (
    <>
      <h2>{setup.configured}</h2>
      <p class="soft">{devices.length === 0 ? texts.noDevices : setup.checkHint}</p>
      <ul class="devices">
        {devices.map((device) => (
          <li>
            {/* Scanners and readers that serve another device (`feeds`) have no type. */}
            <h3>{device.name === null && device.deviceType === null ? device.driver : deviceTitle(device, texts)}</h3>
            <p class="ids">
              {device.deviceId} · {device.driver}
            </p>
            <p role="status" data-found={device.deviceId}>
              {deviceState(device, texts)}
            </p>
            <Technical texts={texts} text={deviceDetail(device, texts)} data={{ 'data-detail': device.deviceId }} />
            <p class="row">
              <button type="button" data-check={device.deviceId}>
                {setup.check}
              </button>
            </p>
          </li>
        ))}
      </ul>
    </>
  )
}

/** Devices that are attached to this machine and not configured. */
function AttachedDevices({
  texts,
  attached,
  configFile,
}: { texts: Texts } & Pick<SetupPageProps, 'attached' | 'configFile'>) {
  const { setup } = texts
  return (
    <>
      <h2>{setup.attached}</h2>
      <p class="soft">
        {attached.length === 0
          ? setup.nothingAttached
          : configFile === undefined
            ? setup.entryHint
            : setup.writeHint(configFile)}
      </p>
      <ul class="devices">
        {attached.map(({ kind, name, at, fix, entry }) => (
          <li>
            <h3>
              {setup.kinds[kind]}: {name}
            </h3>
            <p class="ids">{at}</p>
            <Technical texts={texts} text={fix ?? ''} />
            <Entry texts={texts} text={JSON.stringify(entry)} isWritable={configFile !== undefined} />
          </li>
        ))}
      </ul>
    </>
  )
}

/** Form that searches for an LLRP reader at an address. */
function LlrpSearch({ texts, isWritable }: { texts: Texts; isWritable: boolean }) {
  const { setup } = texts
  return (
    <>
      <h2>{setup.llrp}</h2>
      <form data-slot="llrp" method="post">
        <label for="address">{setup.address}</label>
        <div class="row">
          <input
            id="address"
            data-slot="address"
            maxlength={206}
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            placeholder="10.0.0.7"
            required
          />
          <button type="submit">{setup.look}</button>
        </div>
      </form>
      <p role="status" data-slot="llrp-status" />
      <Technical texts={texts} text="" data={{ 'data-slot': 'llrp-technical' }} />
      <div data-slot="llrp-entry" hidden>
        <Entry texts={texts} text="" isWritable={isWritable} />
      </div>
    </>
  )
}

/**
 * Suggested configuration entry. Users can edit the entry if the configuration file is writable. Otherwise users can
 * only copy the entry.
 */
function Entry({ texts, text, isWritable }: { texts: Texts; text: string; isWritable: boolean }) {
  const { setup } = texts
  if (!isWritable) {
    return (
      <pre data-entry tabindex={0} aria-label={setup.entry}>
        {text}
      </pre>
    )
  }
  return (
    <form data-write method="post">
      <textarea
        data-entry
        aria-label={setup.entry}
        rows={4}
        maxlength={4_000}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
      >
        {text}
      </textarea>
      <p class="row">
        <button type="submit">{setup.write}</button>
      </p>
      <p role="status" data-status />
      <Technical texts={texts} text="" data={{ 'data-technical': true }} />
    </form>
  )
}
