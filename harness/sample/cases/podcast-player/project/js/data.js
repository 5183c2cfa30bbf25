// The season, in the order it is listed. `seconds` is what the file's header says, for the list.

export const EPISODES = [
  {
    id: "pier",
    title: "Low tide at Pier Nine",
    about: "Mussels, ropes and the hum under the boards",
    file: "audio/pier.mp3",
    seconds: 80,
    sky: ["#1d4e6b", "#f2b35e"],
    water: "#0d2536",
  },
  {
    id: "fog",
    title: "The fog signal",
    about: "Why the old horn still sounds twice a minute",
    file: "audio/fog.mp3",
    seconds: 95,
    sky: ["#7d94a1", "#e8e4da"],
    water: "#4a6573",
  },
  {
    id: "ferry",
    title: "Last ferry home",
    about: "Engines, gulls and a deckhand who sings",
    file: "audio/ferry.mp3",
    seconds: 75,
    sky: ["#3a2a52", "#e2725b"],
    water: "#1c1a38",
  },
  {
    id: "dunes",
    title: "Wind in the dunes",
    about: "What marram grass does when nobody walks there",
    file: "audio/dunes.mp3",
    seconds: 90,
    sky: ["#8cc3d2", "#f6ead0"],
    water: "#d6b981",
  },
];

export const findEpisode = (id) => EPISODES.find((episode) => episode.id === id);
