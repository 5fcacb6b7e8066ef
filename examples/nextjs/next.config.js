/** @type {import("next").NextConfig} */
export default {
  turbopack: { root: process.env.PACKAGES_ROOT ?? import.meta.dirname },
};
