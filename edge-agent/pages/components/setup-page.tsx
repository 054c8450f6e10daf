import type { DeviceType } from '../../../policy/vocabulary.ts'
import { UNNAMED_DEVICE } from '../../setup/config-file.ts'
import type { AttachedDevice, DeviceFinding } from '../../setup/device-discovery.ts'
import { deviceDetail, deviceState, deviceTitle } from '../model/status-view.ts'
import type { PageDevice } from '../model/wire.ts'
import type { Texts } from '../texts/texts.ts'
import { DeviceForm, SettingTemplates } from './device-form.tsx'
import { DeviceTests } from './device-tests.tsx'
import { Frame, type FrameProps, type Localization } from './frame.tsx'
import { Technical } from './technical.tsx'

export interface SetupPageProps {
  localization: Localization
  script?: FrameProps['script']
  devices: readonly (PageDevice & { identity?: { description: string; firmwareVersion?: string } })[]
  attached: readonly AttachedDevice[]
  /** Configuration file that the page can add devices to; undefined if there is none. */
  configFile: string | undefined
  /** True if the outputs of the device can be tested now. */
  mayTest(deviceId: string): boolean
  /** Device that the page has added just now; undefined without one. */
  addedId: string | undefined
  /** Warning that the ledger of the agent is untrusted. */
  warning: string | undefined
  /** Why searches for devices failed. */
  notes: readonly string[]
}

/** Page for technicians: configured devices with their states, and attached devices that can be added. */
export function SetupPage(props: SetupPageProps) {
  const { localization, script, devices, attached, configFile, mayTest, warning, notes } = props
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
        <Added {...props} />
        <Configured texts={texts} devices={devices} mayTest={mayTest} />
        <AttachedDevices texts={texts} attached={attached} configFile={configFile} />
        {notes.map((note) => (
          <Technical texts={texts} text={note} />
        ))}
        <NetworkSearch texts={texts} isWritable={configFile !== undefined} />
        {configFile === undefined ? null : <ByHand texts={texts} />}
        <p class="row">
          <a class="button" href="/station">
            {setup.pages}
          </a>
        </p>
        {configFile === undefined ? null : <SettingTemplates texts={texts} devices={devices} />}
      </main>
    </Frame>
  )
}

/** Reports that the page has added a device, and what to do next. */
function Added({ localization, devices, configFile = '', addedId }: SetupPageProps) {
  const { texts } = localization
  const { setup } = texts
  if (addedId === undefined) return null
  const device = devices.find(({ deviceId }) => deviceId === addedId)
  return (
    <div class="banner" role="status" tabindex={-1} data-added data-tone={device ? 'good' : undefined}>
      <p>{device ? setup.added(nameOf(device, texts), configFile) : setup.restartNeeded(configFile)}</p>
      <p class="next">{setup.next[nextStep(device)]}</p>
      {device && device.feeds === null ? (
        <p class="row">
          <a class="button" href={pageOf(device)}>
            {setup.openPage}
          </a>
        </p>
      ) : null}
    </div>
  )
}

function nextStep(device: PageDevice | undefined): 'test' | 'read' | 'restart' {
  if (!device) return 'restart'
  return device.feeds === null ? 'test' : 'read'
}

function pageOf({ deviceId, deviceType }: PageDevice): string {
  return `/${deviceType === 'exit_gate' ? 'gate' : 'station'}?${new URLSearchParams({ device: deviceId })}`
}

/** Scanners and readers that serve another device (`feeds`) have no type. */
function nameOf(device: PageDevice & { driver: string }, texts: Texts): string {
  return device.name === null && device.deviceType === null ? device.driver : deviceTitle(device, texts)
}

/** The devices of the configuration, each with buttons that check and test it. */
function Configured({ texts, devices, mayTest }: { texts: Texts } & Pick<SetupPageProps, 'devices' | 'mayTest'>) {
  const { setup } = texts
  return (
    <>
      <h2>{setup.configured}</h2>
      <p class="soft">{devices.length === 0 ? texts.noDevices : setup.checkHint}</p>
      <ul class="devices">
        {devices.map((device) => (
          <li>
            <h3>{nameOf(device, texts)}</h3>
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
            <DeviceTests texts={texts} device={device} hasOutputs={mayTest(device.deviceId)} />
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
      {configFile === undefined ? (
        <p class="notice">{setup.entryHint}</p>
      ) : (
        <p class="soft">{setup.addHint(configFile)}</p>
      )}
      {attached.length === 0 ? <p class="soft">{setup.nothingAttached}</p> : null}
      <ul class="devices">
        {attached.map(({ kind, name, at, fix, entry }) => (
          <li>
            <h3>
              {setup.kinds[kind]}: {name}
            </h3>
            <p class="ids">{at}</p>
            <Technical texts={texts} text={fix ?? ''} />
            {configFile === undefined ? (
              <DeviceForm texts={texts} entry={entry} type={TYPES[kind]} isWritable={false} />
            ) : (
              <details>
                <summary>{setup.setUp}</summary>
                <DeviceForm texts={texts} entry={entry} type={TYPES[kind]} isWritable />
              </details>
            )}
          </li>
        ))}
      </ul>
    </>
  )
}

/** Form that searches for a reader or board at an address. */
function NetworkSearch({ texts, isWritable }: { texts: Texts; isWritable: boolean }) {
  const { setup } = texts
  return (
    <>
      <h2>{setup.network}</h2>
      <p class="soft">{setup.networkHint}</p>
      <form data-slot="search" method="post">
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
      <p role="status" data-slot="search-status" />
      <Technical texts={texts} text="" data={{ 'data-slot': 'search-technical' }} />
      <div data-slot="search-entry" hidden>
        <DeviceForm texts={texts} entry={{}} type={TYPES.llrp} isWritable={isWritable} />
      </div>
    </>
  )
}

/** Form for a device that no search finds. */
function ByHand({ texts }: { texts: Texts }) {
  const { setup } = texts
  const entry = { deviceId: UNNAMED_DEVICE, driver: 'modbus' }
  return (
    <details class="section">
      <summary>{setup.byHand}</summary>
      <p class="soft">{setup.byHandHint}</p>
      <DeviceForm texts={texts} entry={entry} type={TYPES.board} isWritable />
    </details>
  )
}

/** The most likely type of a device, by how it was found. */
const TYPES: Record<DeviceFinding, DeviceType> = {
  serial: 'self_checkout_detacher',
  nfc: 'pos_deactivator',
  llrp: 'exit_gate',
  board: 'self_checkout_detacher',
}
