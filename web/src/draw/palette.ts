// Colours of the drawing. The hues of kinds are those of Okabe and Ito, darker on light ground and lighter on dark ground
// where the contrast asks for it. Shapes tell the kinds as well.

export type Palette = {
  ground: string;
  gutter: string;
  band: string;
  rule: string;
  lane: string;
  ink: string;
  quiet: string;
  /** By kind: local, send, receive, deliver. */
  kinds: [string, string, string, string];
  arrow: string;
  parent: string;
  backwards: string;
  violation: string;
  held: string;
  density: string;
  selected: string;
  found: string;
  onlyHere: string;
  moved: string;
  fault: string;
};

export const LIGHT: Palette = {
  ground: "#ffffff",
  gutter: "#f7f8fa",
  band: "#f1f4f8",
  rule: "#e2e6eb",
  lane: "#c9d0d8",
  ink: "#1c2430",
  quiet: "#566270",
  kinds: ["#4d5866", "#0072b2", "#b0508a", "#00835f"],
  arrow: "#7b8794",
  parent: "#8a7a50",
  backwards: "#b86e00",
  violation: "#c4200f",
  held: "#b98300",
  density: "#8295ab",
  selected: "#111827",
  found: "#9a6700",
  onlyHere: "#b35900",
  moved: "#7c3aa0",
  fault: "#8f1d10",
};

export const DARK: Palette = {
  ground: "#12161c",
  gutter: "#171c23",
  band: "#181e26",
  rule: "#262e38",
  lane: "#3a4552",
  ink: "#e6eaf0",
  quiet: "#9aa7b5",
  kinds: ["#b4bec9", "#56b4e9", "#e39cc6", "#3cc79b"],
  arrow: "#7c8a99",
  parent: "#a89968",
  backwards: "#f0a830",
  violation: "#ff6b57",
  held: "#e6b84a",
  density: "#5d7086",
  selected: "#ffffff",
  found: "#f0e442",
  onlyHere: "#f5a04a",
  moved: "#c99be8",
  fault: "#ff9a8a",
};
