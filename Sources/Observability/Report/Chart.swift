import BroadsideSupport
internal import Glibc

/// SVG chart: curves, points, bars or stacked areas over an axis. Text keeps its size at any page
/// width; only the curves are stretched.
struct Chart {
    /// Style of a series.
    enum Shape {
        /// Stacked areas with steps.
        case area
        /// Thin stacked bars.
        case bars
        case curve
        case points

        /// Whether each series starts at the top of the previous one.
        var isStacked: Bool { self == .area || self == .bars }
    }

    /// Data series of a chart.
    struct Series {
        /// Name in the legend; empty: not in the legend.
        var name: String
        /// Name of a color in the page's style sheet.
        var color: String
        var shape: Shape
        /// The values in the chart's units, from left to right. nil leaves a gap.
        var values: [Double?]
        /// Horizontal positions of the values of curves and points, 0 to 1; nil: the chart's
        /// `positions`.
        var positions: [Double]?
    }

    /// A label at a position on the horizontal axis, 0 to 1.
    struct Tick {
        var fraction: Double
        var text: String
    }

    var identifier: String
    var title: String
    /// The sentence that describes the curves, for readers who can't see them.
    var description: String
    /// Left edges of the values' intervals, 0 to 1, followed by the right edge of the last one.
    var edges: [Double] = []
    /// Horizontal positions of the values of curves, points and bars, 0 to 1; nil: the middle of
    /// each interval.
    var positions: [Double]?
    var series: [Series]
    var ticks: [Tick]
    /// Vertical lines with a label at their top.
    var marks: [Tick] = []
    /// Periods in which nothing was sent.
    var bands: [TimeAxis.Band] = []
    /// Whether the vertical axis is logarithmic.
    var isLogarithmic = false
    var unit: String
    /// Line of text below the axis.
    var note: String?
    /// HTML table of the chart's values; nil if the page shows these values elsewhere.
    var table: String?

    private static let height = 200
    /// The space above the plot for the unit and the labels of vertical lines.
    private static let top = 34
    private static let left = 48
    private static let wholeHeight = height + top + 24

    var html: String {
        assert(series.allSatisfy(isComplete), "a series of \(identifier) lacks values or positions")
        assert(edges == edges.sorted(), "the edges of \(identifier) are not in order")
        assert(
            (ticks + marks).allSatisfy { (0...1).contains($0.fraction) },
            "a tick of \(identifier) is not on its axis")
        let scale = scale
        return """
            <figure>
            <figcaption><h3>\(escapedHTML(title))</h3>\(legend)</figcaption>
            <div class="chart">\(verticalAxis(scale))<svg role="img" \
            aria-labelledby="\(identifier)-t \(identifier)-d" height="\(Self.wholeHeight)">
            <title id="\(identifier)-t">\(escapedHTML(title))</title>
            <desc id="\(identifier)-d">\(escapedHTML(description))</desc>
            <svg y="\(Self.top)" height="\(Self.height)" width="100%" \
            viewBox="0 0 1000 \(Self.height)" preserveAspectRatio="none">
            \(shading)\(shapes(scale))</svg>
            \(horizontalAxis)</svg></div>
            \(note.map { "<p class=\"note\">\(escapedHTML($0))</p>\n" } ?? "")\
            \(numbers)</figure>

            """
    }

    private var numbers: String {
        guard let table else { return "" }
        return """
            <details><summary>The numbers as a table</summary>
            \(table)</details>

            """
    }

    /// Whether each value of a series has a position.
    private func isComplete(_ one: Series) -> Bool {
        one.positions.map { $0.count == one.values.count } ?? (one.values.count == count)
    }

    /// Number of values in each series.
    private var count: Int { positions?.count ?? max(0, edges.count - 1) }

    /// Highest drawn value; for stacked series, the highest sum.
    private var maximum: Double {
        let sums = (0..<count).map { index in
            series.filter(\.shape.isStacked).reduce(0) { $0 + ($1.values[index] ?? 0) }
        }
        let others = series.filter { !$0.shape.isStacked }.flatMap { $0.values.compactMap { $0 } }
        return (sums + others).max() ?? 0
    }

    private var legend: String {
        let named = series.filter { !$0.name.isEmpty }
        guard named.count > 1 else { return "" }
        let items = named.map {
            "<li><span class=\"key\($0.shape == .points ? " dot" : "") k-\($0.color)\"></span>"
                + "\(escapedHTML($0.name))</li>"
        }
        return "<ul class=\"legend\">\(items.joined())</ul>"
    }

    // MARK: Axes

    /// Mapping of values to heights, from the bottom (0) to the top (1).
    enum Scale {
        case linear(top: Double)
        /// The bounds, both powers of ten.
        case logarithmic(low: Double, high: Double)

        func share(_ value: Double) -> Double {
            switch self {
            case .linear(let top): return min(1, max(0, value / top))
            case .logarithmic(let low, let high):
                guard value > low else { return 0 }
                return min(1, log10(value / low) / log10(high / low))
            }
        }

        /// The values at which there is a grid line.
        var steps: [Double] {
            switch self {
            case .linear(let top): return (0...4).map { top * Double($0) / 4 }
            case .logarithmic(let low, let high):
                let parts = high / low > 50 ? [1.0] : [1, 2, 5]
                var steps: [Double] = []
                var decade = low
                while decade < high * 0.99 {
                    steps += parts.map { $0 * decade }
                    decade *= 10
                }
                return steps + [high]
            }
        }
    }

    private var scale: Scale {
        guard isLogarithmic else { return .linear(top: Self.niceTop(maximum)) }
        let values = series.flatMap { $0.values.compactMap { $0 } }.filter { $0 > 0 }
        guard let least = values.min(), let most = values.max(), most.isFinite else {
            return .linear(top: Self.niceTop(maximum))
        }
        var low = 1.0
        while low > least, low > 1e-6 { low /= 10 }
        while low * 10 <= least { low *= 10 }
        var high = low * 10
        while high < most { high *= 10 }
        assert(low < high && most <= high)
        return .logarithmic(low: low, high: high)
    }

    private func verticalAxis(_ scale: Scale) -> String {
        var svg = "<svg class=\"axis\" aria-hidden=\"true\" width=\"\(Self.left)\" "
        svg += "height=\"\(Self.wholeHeight)\">"
        svg +=
            "<text x=\"0\" y=\"10\">\(escapedHTML(unit))\(isLogarithmic ? ", logarithmic" : "")</text>"
        for value in scale.steps {
            let y = Double(Self.top) + Double(Self.height) * (1 - scale.share(value))
            svg += "<text x=\"\(Self.left - 6)\" y=\"\(decimal(y + 4, places: 1))\" "
            svg += "text-anchor=\"end\">\(Self.short(value))</text>"
        }
        return svg + "</svg>"
    }

    private var horizontalAxis: String {
        var svg = "<g class=\"axis\" aria-hidden=\"true\">"
        for tick in ticks {
            let anchor = tick.fraction < 0.02 ? "start" : tick.fraction > 0.98 ? "end" : "middle"
            svg +=
                "<text x=\"\(Self.percent(tick.fraction))\" y=\"\(Self.top + Self.height + 18)\" "
            svg += "text-anchor=\"\(anchor)\">\(escapedHTML(tick.text))</text>"
        }
        for band in bands where band.isCut {
            // Two strokes across the axis show where it is broken.
            let y = Self.top + Self.height
            for edge in [band.left, band.right] {
                svg += "<text class=\"break\" x=\"\(Self.percent(edge))\" y=\"\(y + 5)\" "
                svg += "text-anchor=\"middle\">/</text>"
            }
        }
        for mark in marks {
            let anchor = mark.fraction > 0.7 ? "end" : "start"
            svg += "<line class=\"mark\" x1=\"\(Self.percent(mark.fraction))\" y1=\"\(Self.top)\" "
            svg += "x2=\"\(Self.percent(mark.fraction))\" y2=\"\(Self.top + Self.height)\"/>"
            svg += "<text x=\"\(Self.percent(mark.fraction))\" y=\"\(Self.top - 6)\" "
            svg += "text-anchor=\"\(anchor)\">\(escapedHTML(mark.text))</text>"
        }
        return svg + "</g>\n"
    }

    // MARK: Curves

    /// Shaded bands for gaps and pauses. They are drawn before the curves.
    private var shading: String {
        bands.map { band in
            "<path class=\"band\" d=\"M\(x(band.left)) 0H\(x(band.right))V\(Self.height)"
                + "H\(x(band.left))Z\"><title>\(escapedHTML(band.text))</title></path>\n"
        }.joined()
    }

    private func shapes(_ scale: Scale) -> String {
        var svg = ""
        for step in scale.steps {
            let y = y(step, scale)
            svg += "<path class=\"grid\" d=\"M0 \(y)H1000\"/>\n"
        }
        var base = [Double](repeating: 0, count: count)
        for one in series {
            switch one.shape {
            case .area: svg += area(one, over: &base, scale)
            case .bars: svg += bars(one, over: &base, scale)
            case .curve: svg += curve(one, scale)
            case .points: svg += points(one, scale)
            }
        }
        return svg
    }

    /// Returns the horizontal position, 0 to 1, of one value in a series.
    private func position(_ index: Int, of one: Series) -> Double {
        one.positions?[index] ?? positions?[index] ?? (edges[index] + edges[index + 1]) / 2
    }

    private func y(_ value: Double, _ scale: Scale) -> String {
        decimal(Double(Self.height) * (1 - scale.share(value)), places: 1)
    }

    private func x(_ edge: Double) -> String { decimal(edge * 1000, places: 1) }

    /// Stacked area with steps, because each value applies to its whole interval.
    private func area(_ one: Series, over base: inout [Double], _ scale: Scale) -> String {
        guard base.count > 0 else { return "" }
        assert(edges.count == base.count + 1, "an area without edges")
        var upper = ""
        var lower: [String] = []
        for index in base.indices {
            let sum = base[index] + (one.values[index] ?? 0)
            upper += "\(index == 0 ? "M" : "L")\(x(edges[index])) \(y(sum, scale))"
            upper += "H\(x(edges[index + 1]))"
            lower.append(
                "L\(x(edges[index + 1])) \(y(base[index], scale))H\(x(edges[index]))")
            base[index] = sum
        }
        return "<path class=\"area c-\(one.color)\" d=\"\(upper)"
            + lower.reversed().joined() + "Z\"/>\n"
    }

    private func curve(_ one: Series, _ scale: Scale) -> String {
        var path = ""
        var isDrawing = false
        for (index, value) in one.values.enumerated() {
            guard let value else {
                isDrawing = false
                continue
            }
            if count == 1, one.values.count == 1 {
                path += "M\(x(0)) \(y(value, scale))H1000"
            } else {
                path += "\(isDrawing ? "L" : "M")\(x(position(index, of: one))) \(y(value, scale))"
            }
            // A short line keeps a single value between two gaps visible.
            if !isDrawing { path += "h0.5" }
            isDrawing = true
        }
        return "<path class=\"curve c-\(one.color)\" d=\"\(path)\"/>\n"
    }

    /// Points, drawn as lines of length 0 with round ends.
    private func points(_ one: Series, _ scale: Scale) -> String {
        var path = ""
        for (index, value) in one.values.enumerated() {
            guard let value else { continue }
            path += "M\(x(position(index, of: one))) \(y(value, scale))h0"
        }
        return "<path class=\"curve points c-\(one.color)\" d=\"\(path)\"/>\n"
    }

    private func bars(_ one: Series, over base: inout [Double], _ scale: Scale) -> String {
        var path = ""
        for (index, value) in one.values.enumerated() {
            guard let value, value > 0 else { continue }
            path +=
                "M\(x(position(index, of: one))) \(y(base[index], scale))V\(y(base[index] + value, scale))"
            base[index] += value
        }
        return "<path class=\"curve bars c-\(one.color)\" d=\"\(path)\"/>\n"
    }

    // MARK: Numbers

    private static func percent(_ fraction: Double) -> String {
        decimal(fraction * 100, places: 2) + "%"
    }

    /// Smallest round number that is at least the maximum and divides into four round parts.
    static func niceTop(_ maximum: Double) -> Double {
        guard maximum > 0, maximum.isFinite else { return 4 }
        var scale = 1.0
        while scale * 10 <= maximum { scale *= 10 }
        while scale > maximum { scale /= 10 }
        for step in [1.0, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10] where step * scale >= maximum {
            assert(step * scale <= 1.5 * maximum, "the values fill most of the axis")
            return step * scale
        }
        return 10 * scale
    }

    /// Number for an axis label, about four characters long.
    static func short(_ value: Double) -> String {
        func cut(_ value: Double) -> String {
            let text = decimal(value, places: value < 10 ? 2 : value < 100 ? 1 : 0)
            guard text.contains(".") else { return text }
            var short = Substring(text)
            while short.hasSuffix("0") { short.removeLast() }
            return String(short.hasSuffix(".") ? short.dropLast() : short)
        }
        switch value {
        case 0: return "0"
        case ..<1000: return cut(value)
        case ..<1_000_000: return cut(value / 1000) + "k"
        default: return cut(value / 1_000_000) + "M"
        }
    }
}
