// What the browser remembers for a listener: the episode, how far each was heard, the volume.

const KEY = "tidewater.v1";
const EMPTY = { current: "pier", positions: {}, volume: 0.8 };

function read() {
  try {
    return { ...EMPTY, ...JSON.parse(localStorage.getItem(KEY)) };
  } catch {
    // A damaged entry only costs the places in the episodes.
    return { ...EMPTY };
  }
}

const state = read();

export const remembered = () => state;

export function remember(changes) {
  Object.assign(state, changes);
  localStorage.setItem(KEY, JSON.stringify(state));
}

export function rememberPosition(id, seconds) {
  remember({ positions: { ...state.positions, [id]: seconds } });
}
