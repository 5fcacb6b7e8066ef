-- The meter of an algorithm: how it reads its terms, loads its cell, charges and shows figures.
-- Made when the first row asks for it. It must not know blocks or verdicts.

local bucket, window, fixed, leases

local function meter_of(kind)
  if kind == 1 then
    bucket = bucket or make_bucket()
    return bucket
  elseif kind == 2 then
    window = window or make_window()
    return window
  elseif kind == 3 then
    fixed = fixed or make_fixed()
    return fixed
  end
  leases = leases or make_leases()
  return leases
end
